import { expect, it } from 'vitest';
import { DAY } from '../../domain/kernel/time.ts';
import { type AttemptDeps, makeAttempt } from '../../processors/webhooks/delivery/attempt.ts';
import type { DeliveryClaim } from '../../processors/webhooks/delivery/claims.ts';
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
