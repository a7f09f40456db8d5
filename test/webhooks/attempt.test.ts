import type { Dispatcher, Pool } from 'undici';
import { expect, it } from 'vitest';
import { DAY } from '../../domain/kernel/time.ts';
import { type AttemptDeps, makeAttempt } from '../../processors/webhooks/delivery/attempt.ts';
import type { DeliveryClaim } from '../../processors/webhooks/delivery/claims.ts';
import { AttemptFailure } from '../../processors/webhooks/delivery/connections.ts';
import { postAndReadStatus } from '../../processors/webhooks/delivery/sender.ts';
import { manualClock } from '../support/manual-clock.ts';

const claim: DeliveryClaim = {
  delivery_id: '01890000-0000-7000-8000-000000000001',
  webhook_id: '01890000-0000-7000-8000-000000000002',
  partner_id: '01890000-0000-7000-8000-000000000003',
  event_id: 'evt_1',
  created_at: '2026-03-14T12:30:00.000Z',
  cycle: 1,
  attempt: 1,
  ran_ms: 0,
  ahead: false,
};
const target = { url: 'https://receiver.example/', secrets: [] };

it('a clock that jumps ahead during a failed attempt neither ends the retries nor puts them off', async () => {
  const clock = manualClock();
  const deps: AttemptDeps = {
    clock,
    targetsOf: async () => new Map(),
    bodyOf: async () => Buffer.from('{}'),
    sign: () => ({}),
    send: async () => {
      clock.advance(365 * DAY);
      return { http_status: null, error: 'dns', retry_after_ms: null };
    },
    retryBaseMs: 15_000,
    random: () => 0.5,
    onStart: () => undefined,
  };
  const ended = await makeAttempt(deps, claim, target);
  expect(ended).toMatchObject({
    state: 'pending',
    error: 'dns',
    next_attempt_at: expect.stringMatching(/^2026-03-14T12:30:1[5-9]/),
  });
});

const POSTING = { url: new URL('https://hooks.example/'), headers: {}, body: Buffer.from('{}') };

/** Answers 204 within `dispatch`, after blocking the event loop (and so every timer) for `busyMs`. */
const answeringAfter = (busyMs: number): Pool => {
  const dispatch: Pool['dispatch'] = (_options, handler) => {
    const controller = {
      abort: (error: Error) => handler.onResponseError?.(controller, error),
    } as unknown as Dispatcher.DispatchController;
    handler.onRequestStart?.(controller, {});
    const end = performance.now() + busyMs;
    while (performance.now() < end);
    handler.onResponseStart?.(controller, 204, {}, 'No Content');
    handler.onResponseEnd?.(controller, {});
    return true;
  };
  return { dispatch } as Pool;
};

it('counts a 2xx that is handled before the deadline', async () => {
  expect(await postAndReadStatus(answeringAfter(0), POSTING, 60_000)).toMatchObject({ status: 204 });
});

it('times out when the 2xx is handled after the deadline although no timer could run', async () => {
  await expect(postAndReadStatus(answeringAfter(20), POSTING, 10)).rejects.toEqual(
    new AttemptFailure('timeout'),
  );
});
