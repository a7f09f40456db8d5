import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import type { DatabasePool } from 'slonik';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isoTime } from '../../domain/kernel/time.ts';
import { countDeliveries, listDeliveries } from '../../read-api/webhooks/delivery-queries.ts';
import { AT } from '../lookup/lookup-events.ts';
import { planOf, rowsRead } from '../support/rows-read.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
let db: pg.Client;
beforeAll(async () => {
  stack = await startTestStack();
  db = await stack.session('set enable_seqscan = off');
});
afterAll(() => stack.close());

/**
 * Adds deliveries of the last 90 days, a third of whose bodies have not expired; the sweep has yet to mark the last `due`.
 * Rows that attempts and sweeps have updated lie in no order.
 */
const deliver = (webhookId: string, count: number, due: number) =>
  stack.pool.query(
    `insert into read.webhook_delivery
       (delivery_id, webhook_id, partner_id, event_id, type, state, cycle, attempts, cycle_attempts, cycle_started_at,
        stood_still_ms, created_at, position, payload_expires_at)
     select gen_random_uuid(), $1, $1, 'evt_x', 'session.created',
            case when n < 2 * $3::int / 3 - $4::int then 'expired' else 'delivered' end, 1, 1, 1, at, 0, at, n, at + interval '30 days'
     from (select n, $2::timestamptz - ($3 - n) * interval '90 days' / $3 as at from generate_series(0, $3 - 1) n) d
     order by md5(n::text)`,
    [webhookId, isoTime(AT - 1), count, due],
  );

/** A pool that notes how many deliveries each query reads. */
const explainedReads = () => {
  const read: number[] = [];
  const explained = {
    any: async (query: { sql: string; values: unknown[] }) => {
      const text = query.sql.replaceAll('$slonik_', '$');
      read.push(rowsRead(await planOf(db, text, query.values), 'webhook_delivery'));
      return (await db.query(text, query.values)).rows;
    },
  } as unknown as DatabasePool;
  return { explained, read };
};

it("counts and lists an endpoint's expired deliveries without reading its whole history", async () => {
  const webhookId = randomUUID();
  await deliver(webhookId, 90_000, 1);
  await deliver(randomUUID(), 30_000, 0);
  await stack.rows('analyze read.webhook_delivery');
  // PostgreSQL plans as for a table of millions of rows, which is not in its cache.
  await db.query('set random_page_cost = 20');
  const { explained, read } = explainedReads();
  const page = { webhookId, deleted: false, status: 'expired', before: null, limit: 51, now: AT } as const;
  const listed = await listDeliveries(explained, page);
  expect(listed.slice(0, 3).map(({ position }) => position)).toEqual(['60000', '59999', '59998']);
  const counted = await countDeliveries(explained, [webhookId], AT);
  expect(counted.get(webhookId)).toMatchObject({ delivered: '-2', expired: '2' });
  expect(Math.max(...read), String(read)).toBeLessThan(1_000);
});

it('reads 5,000 of the deliveries that the sweep has yet to mark, however many of another partner have expired at once', async () => {
  await stack.pool.query('truncate read.webhook_delivery');
  const webhookId = randomUUID();
  await deliver(randomUUID(), 60_000, 30_000);
  await deliver(webhookId, 30_000, 1);
  await stack.rows('analyze read.webhook_delivery');
  await db.query('reset random_page_cost');
  const { explained, read } = explainedReads();
  const page = { webhookId, deleted: false, status: 'expired', before: null, limit: 51, now: AT } as const;
  expect(await listDeliveries(explained, page)).toHaveLength(51);
  await countDeliveries(explained, [webhookId], AT);
  expect(Math.max(...read), String(read)).toBeLessThan(6_000);
});
