import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DAY } from '../../domain/kernel/time.ts';
import { sweepClaims } from '../../processors/claims.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

it('claims whose leases ended a day ago are deleted in batches, so that no statement comes to its time limit', async () => {
  const claim = (count: number, at: number) =>
    stack.rows(
      `insert into work.claim (item, cycle, attempt, lease_until) select 'item ' || n, 1, $2::bigint / 1000 % 1000000, $1 from generate_series(1, $3) n`,
      [new Date(at), at, count],
    );
  const now = stack.clock.now();
  await claim(4_500, now - DAY - 1_000);
  await claim(3, now - DAY + 1_000);
  await claim(2, now + DAY - 2_000);
  await claim(1, now + DAY + 3_000);
  const deleted: (number | null)[] = [];
  const query = async (text: string, values: unknown[]) => {
    const done = await stack.pool.query(text, values);
    deleted.push(done.rowCount);
    return done;
  };
  await sweepClaims({ query } as unknown as pg.Pool, now);
  expect(deleted).toEqual([2_000, 2_000, 500, 1]);
  expect(await stack.rows('select from work.claim')).toHaveLength(5);
});
