import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DAY, utcDay } from '../../domain/kernel/time.ts';
import { deleteOldDeliveries } from '../../processors/webhooks/expire-deliveries.ts';
import { forgetDeliveriesBefore } from '../../projections/webhooks/deliveries.ts';
import { planOf, rowsRead } from '../support/rows-read.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

/** A script may make, test and delete endpoints all day: each has totals for 90 days. */
const total = (count: number, daysAgo: number) =>
  stack.rows(
    `insert into read.webhook_total (webhook_id, partner_id, day, state, deliveries)
     select w, $1, $2, s, 1
     from (select gen_random_uuid() as w from generate_series(1, $3)) e, unnest(array['pending', 'delivered']) s`,
    [randomUUID(), utcDay(stack.clock.now() - daysAgo * DAY), count],
  );

it('the cleanup after 90 days reads the totals of past days page by page, and no others', async () => {
  await total(10_000, 30);
  await total(8_500, 92);
  await stack.rows('vacuum analyze read.webhook_total');
  const db = await stack.session('set enable_seqscan = off');
  const read: number[] = [];
  const query = async (config: string | { text: string; values: unknown[] }, given: unknown[] = []) => {
    const { text, values } = typeof config === 'string' ? { text: config, values: given } : config;
    if (!text.includes('read.webhook_total')) return stack.pool.query(text, values);
    read.push(rowsRead(await planOf(db, text, values), 'webhook_total'));
    return text.includes('distinct') ? { rows: [] } : stack.pool.query(text, values);
  };
  const pool = { query } as unknown as pg.Pool;
  const { store, clock } = stack;
  const streams: string[] = [];
  const noting: typeof store.readStream = (stream) => {
    streams.push(stream);
    return store.readStream('none');
  };
  await deleteOldDeliveries(
    { store: { ...store, readStream: noting }, pool, clock },
    { projections: [], processors: [] },
    (before) => forgetDeliveriesBefore(pool, before),
  );
  expect([streams.length, new Set(streams).size]).toEqual([8_500, 8_500]);
  expect(read).toHaveLength(11);
  expect(Math.max(...read), String(read)).toBeLessThanOrEqual(2_000);
});
