import fc from 'fast-check';
import { NIL } from 'uuid';
import { expect, it } from 'vitest';
import { afterTurns, firstTurns, takeTurns } from '../../processors/partner-turns.ts';

const PARTNERS_A_BATCH = 100;

/** Takes all items in batches of `limit`. @returns of each batch the number of items that each partner had taken */
const batchesOf = (items: readonly number[], limit: number): Map<string, number>[] => {
  const left = new Map(items.map((count, n) => [`partner-${n}`, count]));
  const batches: Map<string, number>[] = [];
  for (let waiting = firstTurns([...left.keys()]); waiting.length > 0; ) {
    const batch = takeTurns(waiting, limit);
    const taken = new Map<string, number>();
    const rows = batch.turns.flatMap(({ partner_id }) => {
      const count = Math.min(batch.share, left.get(partner_id) ?? 0);
      left.set(partner_id, (left.get(partner_id) ?? 0) - count);
      taken.set(partner_id, count);
      return Array.from({ length: count }, () => ({ partner_id, cursor: 'later', id: NIL }));
    });
    waiting = afterTurns(waiting, batch, rows);
    batches.push(taken);
  }
  expect([...left.values()].every((count) => count === 0)).toBe(true);
  return batches;
};

it('takes all items in batches within the limit, and of each partner before any has a second turn', () => {
  const items = fc.array(fc.integer({ min: 1, max: 2_000 }), { maxLength: 250 });
  fc.assert(
    fc.property(items, fc.integer({ min: PARTNERS_A_BATCH, max: 500 }), (counts, limit) => {
      const batches = batchesOf(counts, limit);
      for (const batch of batches) {
        expect([...batch.values()].reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(limit);
      }
      const firstTurn = batches.slice(0, Math.ceil(counts.length / PARTNERS_A_BATCH));
      expect(new Set(firstTurn.flatMap((batch) => [...batch.keys()])).size).toBe(counts.length);
    }),
    { numRuns: 50 },
  );
});

it('gives a partner the whole batch after the others have no more items', () => {
  expect(batchesOf([10_000, 1, 2], 500).at(-2)).toEqual(new Map([['partner-0', 500]]));
});
