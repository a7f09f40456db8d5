import { expect, it } from 'vitest';
import { createCostlyReads } from '../../platform/costly-reads.ts';

/** A read that takes `takes` ms on the test's clock, and fails where the test says so. */
const setUp = (takes: number) => {
  const state = { at: 0, reads: 0, fails: false };
  const read = createCostlyReads(
    async (partner: string) => {
      state.reads += 1;
      const number = state.reads;
      await Promise.resolve();
      state.at += takes;
      if (state.fails) throw new Error('timeout');
      return `${partner} ${number}`;
    },
    () => state.at,
  );
  return { read, state };
};

it('shares one run among callers at the same time', async () => {
  const { read } = setUp(1_000);
  expect(await Promise.all([read('a'), read('a'), read('b')])).toEqual(['a 1', 'a 1', 'b 2']);
});

it('reuses the result of a long run for ten times as long as it took', async () => {
  const { read, state } = setUp(1_000);
  expect(await read('a')).toBe('a 1');
  state.at += 9_999;
  expect(await read('a')).toBe('a 1');
  state.at += 1;
  expect(await read('a')).toBe('a 2');
});

it('reuses no result of a short run', async () => {
  const { read } = setUp(249);
  expect([await read('a'), await read('a')]).toEqual(['a 1', 'a 2']);
});

it('runs again after a failure', async () => {
  const { read, state } = setUp(1_000);
  state.fails = true;
  await expect(read('a')).rejects.toThrow('timeout');
  state.fails = false;
  expect(await read('a')).toBe('a 2');
});
