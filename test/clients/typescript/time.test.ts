import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { realTime } from '../../../clients/typescript/src/time.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('the wait takes as long as requested, also for longer than a timer can', async () => {
  let waited = false;
  const sleep = realTime.sleep(Infinity).then(() => {
    waited = true;
  });
  await vi.advanceTimersByTimeAsync(86_400_000);
  expect(waited).toBe(false);
  vi.runAllTimers();
  await sleep;
});

it('the wait ends on a signal with its reason and leaves no timer behind', async () => {
  const stop = new AbortController();
  const sleep = realTime.sleep(1_000, stop.signal);
  stop.abort('enough');
  await expect(sleep).rejects.toBe('enough');
  expect(vi.getTimerCount()).toBe(0);
  await expect(realTime.sleep(1_000, stop.signal)).rejects.toBe('enough');
});
