import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../domain/kernel/time.ts';
import { createLogger } from '../../platform/telemetry/log.ts';
import { findDueEndpoints, type Watched } from '../../processors/webhooks/delivery/due-endpoints.ts';
import { readDue } from '../../projections/webhooks/deliveries/health-readers.ts';
import { type TestDatabase, testDatabase, testPool } from '../support/database.ts';
import { manualClock } from '../support/manual-clock.ts';
import { insertEndpoint, insertPendingDeliveries } from '../support/pending-deliveries.ts';

const clock = manualClock();
let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await testDatabase();
  pool = testPool(database, 2);
  const recordedAt = clock.now() - DAY;
  const expired = await insertEndpoint(pool, 3);
  await insertPendingDeliveries(pool, expired, { count: 3, recordedAt, payloadExpiresAt: clock.now() - 1 });
  const waiting = await insertEndpoint(pool);
  await insertPendingDeliveries(pool, waiting, {
    count: 1,
    recordedAt: clock.now() - MINUTE,
    payloadExpiresAt: clock.now() + HOUR,
  });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

it('does not count deliveries whose payload has expired as due or late', async () => {
  const oldest = new Date(clock.now() - MINUTE).toISOString();
  expect(await readDue(pool, null, clock.now())).toEqual({ due: 1, oldest_due_at: oldest });
});

it('does not measure the age of deliveries whose payload has expired', async () => {
  const { promise, resolve } = Promise.withResolvers<Watched>();
  const log = createLogger({ level: 'silent' });
  const polling = findDueEndpoints({ pool, clock, log, schedule: () => undefined, onWatched: resolve });
  expect(await promise).toEqual({ accepting: 2, breakerOpen: 0, paused: 0, oldestDueMs: MINUTE });
  await polling.stop();
});
