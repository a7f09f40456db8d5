import { randomUUID } from 'node:crypto';
import type { DatabasePool } from 'slonik';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DAY, isoTime } from '../../domain/kernel/time.ts';
import { readDays } from '../../read-api/usage/get-usage.ts';
import { AT } from '../lookup/lookup-events.ts';
import { planOf, rowsRead } from '../support/rows-read.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

/** Adds keys, of which each has answered once in each of `hours` hours up to `AT`. */
const keys = async (partnerId: string, count: number, hours: number, revokedAt: number | null = null) => {
  const prefix = randomUUID();
  await stack.pool.query(
    `insert into read.api_key (key_id, partner_id, name, hash, requests_per_second, pending_enrichments, company_signals,
                               created_at, revoked_at)
     select $1 || n, $2, n, $1 || n, 1, 1, false, $4, $5 from generate_series(1, $3::int) n`,
    [prefix, partnerId, count, isoTime(AT), revokedAt === null ? null : isoTime(revokedAt)],
  );
  await stack.pool.query(
    `insert into read.usage_hour
     select $1 || n, date_trunc('hour', $4::timestamptz) - h * interval '1 hour', 'company', 'p', 1, 1, 1
     from generate_series(0, $3 - 1) h, generate_series(1, $2::int) n`,
    [prefix, count, hours, isoTime(AT)],
  );
};

it("counts a partner's answers by day without reading those of other partners", async () => {
  const partnerId = randomUUID();
  await keys(randomUUID(), 300, 200);
  await keys(partnerId, 99, 5);
  await keys(partnerId, 1, 5, AT - DAY);
  await keys(partnerId, 1, 0, AT - 40 * DAY);
  await stack.rows('analyze read.usage_hour');
  await stack.rows('analyze read.api_key');
  const read: number[] = [];
  const explained = {
    any: async (query: { sql: string; values: unknown[] }) => {
      const text = query.sql.replaceAll('$slonik_', '$');
      read.push(rowsRead(await planOf(stack.pool, text, query.values), 'usage_hour'));
      return (await stack.pool.query(text, query.values)).rows;
    },
  } as unknown as DatabasePool;
  const days = await readDays(explained, partnerId, isoTime(AT - 30 * DAY));
  expect(days.reduce((sum, { requests }) => sum + Number(requests), 0)).toBe(500);
  expect(read[0]).toBeLessThan(2_000);
});
