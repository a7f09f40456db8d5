import type { Dispatcher, Pool } from 'undici';
import { expect, it } from 'vitest';
import { AttemptFailure } from '../../processors/webhooks/delivery/connections.ts';
import { postAndReadStatus } from '../../processors/webhooks/delivery/sender.ts';

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
