import { afterAll, beforeAll, expect, it } from 'vitest';
import { forgetUsageBefore } from '../../projections/usage/lookup-counts.ts';
import { explaining } from '../support/rows-read.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

it('usage of past days is deleted in batches that read no other days, so that no statement comes to its time limit', async () => {
  await stack.rows(
    `insert into read.usage_hour (key_id, hour, outcome, source, requests, cache_hits, duration_us)
     select 'key_' || n, timestamptz '2026-03-01 12:00Z' + n % 3 * interval '1 day', 'company', 'a', 1, 0, 0
     from generate_series(1, 13500) n`,
  );
  await stack.rows('analyze read.usage_hour');
  const { pool, read } = explaining(stack.pool, 'from read.usage_hour', 'usage_hour');
  await forgetUsageBefore(pool, '2026-03-02');
  expect(Math.max(...read), String(read)).toBeLessThanOrEqual(3 * 2_000);
  expect(await stack.rows('select min(hour) as first, count(*)::int as hours from read.usage_hour')).toEqual([
    { first: new Date('2026-03-02T12:00:00Z'), hours: 9_000 },
  ]);
});
