import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createLogger } from '../../platform/telemetry/log.ts';
import { type DeliveryClaims, HeldClaims } from '../../processors/webhooks/delivery/claims.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const claim = { webhook_id: 'w', delivery_id: 'd', cycle: 1, attempt: 1 } as never;

it('releases a claim again whose release took long and failed twice, and then rests', async () => {
  let fails: (error: Error) => void = () => undefined;
  const release = vi
    .fn<() => Promise<void>>()
    .mockImplementationOnce(() => new Promise((_, reject) => (fails = reject)))
    .mockRejectedValueOnce(new Error('no connection'))
    .mockResolvedValue(undefined);
  const held = new HeldClaims({
    claims: { release, renew: async () => undefined } as unknown as DeliveryClaims,
    clock: { now: () => 0 },
    log: createLogger({ level: 'silent' }),
    projected: async () => true,
  });
  held.add([claim]);
  held.release(claim);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(release).toHaveBeenCalledTimes(1);
  fails(new Error('no connection'));
  await vi.advanceTimersByTimeAsync(2_000);
  expect(release).toHaveBeenCalledTimes(3);
  expect(vi.getTimerCount()).toBe(0);
  await held.stop();
});
