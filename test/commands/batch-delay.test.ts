import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createBatchDelay } from '../../commands/batch-delay.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Calls at even intervals, whether or not earlier calls have proceeded. @returns how long each waited */
const evenly = async (batchDelay: () => Promise<void>, calls: number, everyMs: number): Promise<number[]> => {
  const waited: number[] = [];
  for (let n = 0; n < calls; n += 1) {
    const called = Date.now();
    void batchDelay().then(() => {
      waited[n] = Date.now() - called;
    });
    await vi.advanceTimersByTimeAsync(everyMs);
  }
  await vi.advanceTimersByTimeAsync(1_000);
  return waited;
};

it('lets independent calls proceed three at a time', async () => {
  const waited = await evenly(createBatchDelay({ ms: 25, most: 3 }), 46, 10);
  expect(waited.slice(0, 16)).toEqual(Array(16).fill(0));
  expect(waited.slice(16)).toEqual(Array(10).fill([20, 10, 0]).flat());
});

it('lets calls proceed at once while they are too rare to group, and probes ever more rarely', async () => {
  const waited = await evenly(createBatchDelay({ ms: 25, most: 3 }), 16 + 1 + 16 + 1 + 32 + 1 + 64, 100);
  const waits = waited.flatMap((ms, n) => (ms > 0 ? [n] : []));
  expect(waits).toEqual([16, 33, 66]);
});

it('costs a sequential caller one wait in ever more calls', async () => {
  const batchDelay = createBatchDelay({ ms: 25, most: 3 });
  const began = Date.now();
  const calling = (async () => {
    for (let n = 0; n < 1_000; n += 1) await batchDelay();
  })();
  await vi.runAllTimersAsync();
  await calling;
  expect(Date.now() - began).toBeLessThanOrEqual(7 * 25);
});

it('holds a call no longer than its time limit', async () => {
  const batchDelay = createBatchDelay({ ms: 25, most: 3 });
  const waited = [...(await evenly(batchDelay, 18, 1)), ...(await evenly(batchDelay, 500, 13))];
  expect(Math.max(...waited)).toBeLessThanOrEqual(25);
});
