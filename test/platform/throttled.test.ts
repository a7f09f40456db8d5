import { expect, it } from 'vitest';
import { throttled } from '../../platform/clock/waiting.ts';
import { mostBetweenTurns } from '../support/between-turns.ts';

async function* upTo(count: number): AsyncGenerator<number> {
  for (let n = 0; n < count; n += 1) yield n;
}

it('passes all items on in their order, and lets others in after each hundred', async () => {
  const items: number[] = [];
  const most = mostBetweenTurns(() => items.length);
  for await (const item of throttled(upTo(1_050))) items.push(item);
  expect(items).toEqual(Array.from({ length: 1_050 }, (_, n) => n));
  expect(most()).toBeLessThanOrEqual(100);
});
