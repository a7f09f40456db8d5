import { expect, it } from 'vitest';
import type { Position } from '../../event-store/port.ts';
import { TailMemory } from '../../event-store/tail.ts';

const BATCHES = 4_000;

it('a follower near the end of the log finds its next batch without reading all that is remembered', () => {
  const memory = new TailMemory();
  memory.begin(null);
  for (let nth = 1; nth <= BATCHES; nth += 1) memory.add({ events: [], position: BigInt(nth) as Position });
  let comparisons = 0;
  const third = {
    valueOf: () => {
      comparisons += 1;
      return BigInt(BATCHES - 3);
    },
  };
  expect(memory.after(third as unknown as Position)?.position).toBe(BigInt(BATCHES));
  expect(comparisons).toBeLessThan(10);
});
