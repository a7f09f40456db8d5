import { randomUUID } from 'node:crypto';
import pino from 'pino';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openPool } from '../../platform/open-pool.ts';
import { DeliveryClaims } from '../../processors/webhooks/claims.ts';
import { insertEndpoint, insertPendingDeliveries } from '../support/pending-deliveries.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

const NOW = Date.parse('2026-03-01T12:00:00.000Z');
const LEASE_MS = 30_000;

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

it('claims deliveries of an endpoint without reading the claims of others', async () => {
  const one = openPool(stack.url, pino({ level: 'silent' }), { max: 1 });
  const projection = randomUUID();
  const endpoint = await insertEndpoint(one, 10);
  await one.query('insert into read.projection (name, position) values ($1, 100)', [projection]);
  await insertPendingDeliveries(one, endpoint, { count: 10, recordedAt: NOW });
  await one.query(
    `insert into work.delivery_claim (delivery_id, cycle, attempt, webhook_id, holder, running, lease_until)
     select gen_random_uuid(), 1, 1, gen_random_uuid(), gen_random_uuid(), true, $1 from generate_series(1, 3000)`,
    [new Date(NOW + LEASE_MS)],
  );
  await one.query('analyze work.delivery_claim, read.webhook_delivery');
  const readClaims = async (): Promise<number> => {
    await one.query('select pg_stat_force_next_flush()');
    const { rows } = await one.query(
      `select (t.seq_tup_read + sum(i.idx_tup_read))::int as read
       from pg_stat_user_tables t join pg_stat_user_indexes i using (relid)
       where t.relid = 'work.delivery_claim'::regclass group by t.seq_tup_read`,
    );
    return rows[0].read;
  };
  const claims = new DeliveryClaims(one, {
    holder: randomUUID(),
    leaseMs: LEASE_MS,
    projections: [projection],
    concurrency: 32,
    startsPerSecond: 200,
    probeEveryMs: 60_000,
  });
  const before = await readClaims();
  const [taken] = await claims.take([{ webhookId: endpoint.webhookId, count: 5 }], NOW);
  expect(taken?.claims).toHaveLength(5);
  expect((await readClaims()) - before).toBeLessThan(100);
  await one.end();
});
