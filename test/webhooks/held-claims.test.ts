import pino from 'pino';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { DeliveryClaim, DeliveryClaims } from '../../processors/webhooks/claims.ts';
import { HeldClaims } from '../../processors/webhooks/held-claims.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it('releases claims again whose release failed', async () => {
  const release = vi
    .fn<DeliveryClaims['release']>(async () => undefined)
    .mockRejectedValueOnce('connection lost');
  const held = new HeldClaims({
    claims: { release } as unknown as DeliveryClaims,
    clock: { now: () => 0 },
    log: pino({ level: 'silent' }),
    projected: async () => true,
  });
  const claims = ['first', 'second'].map((delivery_id) => ({ delivery_id }) as DeliveryClaim);
  for (const claim of claims) held.release(claim);
  await vi.advanceTimersByTimeAsync(1_500);
  expect(release.mock.calls).toEqual([[claims], [claims]]);
  await held.stop();
  expect(release).toHaveBeenCalledTimes(2);
});
