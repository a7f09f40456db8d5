import { expect, it } from 'vitest';
import { createSemaphore, WorkRefused } from '../../platform/limits/semaphore.ts';

it('runs work up to its limit, queues a bounded number in order and refuses more', async () => {
  const run = createSemaphore({ limit: 2, maxWaiting: 2 }).enter;
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const work = (nth: number) =>
    run(() => {
      begun.push(nth);
      return new Promise<void>((resolve) => ends.push(resolve));
    });
  const [first, second, third, fourth] = [work(1), work(2), work(3), work(4)];
  await expect(work(5)).rejects.toBeInstanceOf(WorkRefused);
  expect(begun).toEqual([1, 2]);
  ends[1]?.();
  await second;
  await expect.poll(() => begun).toEqual([1, 2, 3]);
  const sixth = work(6);
  ends[0]?.();
  await first;
  await expect.poll(() => begun).toEqual([1, 2, 3, 4]);
  for (const end of ends) end();
  await Promise.all([third, fourth]);
  ends.at(-1)?.();
  await expect.poll(() => begun).toEqual([1, 2, 3, 4, 6]);
  ends.at(-1)?.();
  await sixth;
});

it('continues after work that fails', async () => {
  const run = createSemaphore({ limit: 1, maxWaiting: 1 }).enter;
  const failing = run(() => Promise.reject(new Error('broken')));
  const next = run(async () => 'done');
  await expect(failing).rejects.toThrow('broken');
  expect(await next).toBe('done');
});
