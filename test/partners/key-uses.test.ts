import { afterAll, beforeAll, expect, it } from 'vitest';
import { createKeyUses } from '../../processors/partners/key-uses.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

it('records when each key was used, not when that is written', async () => {
  const { pool, clock, rows } = stack;
  const uses = createKeyUses({ pool, clock });
  const begun = clock.now();
  uses.note({ key_id: 'key_one' });
  clock.advance(60_000);
  uses.note({ key_id: 'key_other' });
  clock.advance(60_000);
  await uses.close();
  expect(await rows('select key_id, used_at from work.key_use order by key_id')).toEqual([
    { key_id: 'key_one', used_at: new Date(begun) },
    { key_id: 'key_other', used_at: new Date(begun + 60_000) },
  ]);
});
