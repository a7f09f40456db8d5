import { expect, it } from 'vitest';
import { unhurried } from '../../platform/unhurried.ts';

async function* upTo(count: number): AsyncGenerator<number> {
  for (let n = 0; n < count; n += 1) yield n;
}

it('passes all items on in their order, and lets others in after each hundred', async () => {
  const items: number[] = [];
  const itemsBetweenTurns: number[] = [];
  let before = 0;
  const turn = () => {
    itemsBetweenTurns.push(items.length - before);
    before = items.length;
    next = setImmediate(turn);
  };
  let next = setImmediate(turn);
  for await (const item of unhurried(upTo(1_050))) items.push(item);
  clearImmediate(next);
  expect(items).toEqual(Array.from({ length: 1_050 }, (_, n) => n));
  expect(Math.max(...itemsBetweenTurns)).toBeLessThanOrEqual(100);
});
