import { expect, it } from 'vitest';
import { createLineLimit } from '../../http/line-limit.ts';

it('admits 60 lines a minute of each kind, and then says how many were left out', () => {
  let now = 0;
  const admit = createLineLimit(() => now);
  const first = Array.from({ length: 100 }, () => admit('one kind'));
  expect(first).toEqual([...Array(60).fill(0), ...Array(40).fill(null)]);
  expect(admit('another kind')).toBe(0);
  now = 60_000;
  expect([admit('one kind'), admit('one kind')]).toEqual([40, 0]);
});
