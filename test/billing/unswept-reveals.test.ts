import { randomUUID } from 'node:crypto';
import type { DatabasePool } from 'slonik';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readUnsweptReveals } from '../../queries/reveals/reveals.ts';
import { planOf, rowsRead } from '../support/rows-read.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

const reveals = (partnerId: string, count: number) =>
  stack.pool.query(
    `insert into read.reveal
       (reveal_id, session_id, tracker_id, partner_id, created_at, expires_at, last_revision, last_position)
     select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), $1, now(), now(), 0, 0 from generate_series(1, $2)`,
    [partnerId, count],
  );

it("reads a partner's reveals for its audit past those of other partners", async () => {
  const [small, large] = [randomUUID(), randomUUID()];
  await reveals(large, 20_000);
  await reveals(small, 3);
  await stack.rows('analyze read.reveal');
  const read: number[] = [];
  const explained = {
    any: async (query: { sql: string; values: unknown[] }) => {
      const { values } = query;
      const sql = query.sql.replaceAll('$slonik_', '$');
      read.push(rowsRead(await planOf(stack.pool, sql, values), 'reveal'));
      return (await stack.pool.query(sql, values)).rows;
    },
  } as unknown as DatabasePool;
  expect((await readUnsweptReveals(explained, small)).size).toBe(3);
  expect(read[0]).toBeLessThan(100);
});
