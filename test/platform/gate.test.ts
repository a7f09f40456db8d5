import { afterEach, expect, it, vi } from 'vitest';
import { createGate, WorkRefused } from '../../platform/gate.ts';

afterEach(() => {
  vi.useRealTimers();
});

it('runs work up to its limit, queues a bounded number in order and refuses more', async () => {
  const run = createGate({ room: 2, waiting: 2 }).enter;
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
  const run = createGate({ room: 1, waiting: 1 }).enter;
  const failing = run(() => Promise.reject(new Error('broken')));
  const next = run(async () => 'done');
  await expect(failing).rejects.toThrow('broken');
  expect(await next).toBe('done');
});

it('keeps a slot taken while it rests, and returns the result of the work at once', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
  const { enter } = createGate({ room: 1, waiting: 1, rest: 3 });
  const took10 = () => new Promise<number>((resolve) => setTimeout(() => resolve(performance.now()), 10));
  const begun = performance.now();
  const first = enter(took10);
  const second = enter(() => Promise.resolve(performance.now()));
  await vi.advanceTimersByTimeAsync(10);
  expect((await first) - begun).toBe(10);
  await vi.advanceTimersByTimeAsync(30);
  expect((await second) - begun).toBe(40);
});
