import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { grantAnalyst } from '../../cli/analytics/analysts.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../platform/embedded/embedded-postgres.ts';
import { migrate } from '../../platform/postgres/migrate.ts';
import { clientOf } from '../support/analysts.ts';
import { startApi, type TestApi } from '../support/api.ts';
import { makeDataFolder, removeDataFolder } from '../support/data-folder.ts';

const quiet = { info: () => {}, warn: () => {}, error: () => {} };
/** PostgreSQL's minimum. */
const SMALL_QUEUE = ['max_notify_queue_pages=64'];

const folder = makeDataFolder();
const clients: pg.Client[] = [];
let postgres: EmbeddedPostgres;
let api: TestApi;
beforeAll(async () => {
  postgres = await startEmbeddedPostgres({
    dataDir: folder,
    log: quiet,
    durable: false,
    moreSettings: SMALL_QUEUE,
  });
  await migrate(postgres.url);
}, 60_000);
afterAll(async () => {
  await Promise.all(clients.map((client) => client.end()));
  await api?.close();
  await postgres.stop();
  await removeDataFolder(folder);
});

it('a login that fills the notification queue stops no read model and no enrichment', async () => {
  api = await startApi({ database: { url: postgres.url, drop: async () => {} } });
  const key = await api.key();
  const { granted } = await grantAnalyst(postgres.url, 'alice');
  const [listening, sending] = [clientOf(granted), clientOf(granted)];
  clients.push(listening, sending);
  for (const client of clients) await client.connect();
  await listening.query('listen x; set idle_in_transaction_session_timeout = 0');
  await listening.query('begin; select 1');
  const fill = `select pg_notify('x', repeat('a', 7900) || n) from generate_series(1, 10) n`;
  const full = await (async () => {
    for (let sent = 0; sent < 64; sent += 10) await sending.query(fill);
  })().catch((error: Error) => error.message);
  expect(full).toContain('too many notifications');
  for (let left = true; left; ) {
    left = await sending.query(`select pg_notify('x', repeat('b', 7000))`).then(
      () => true,
      () => false,
    );
  }
  expect((await api.post(key, '8.8.8.8')).statusCode).toBe(202);
  expect((await api.settled(key, '8.8.8.8')).statusCode).toBe(200);
  await api.caughtUp();
  const { rows } = await api.sql.query('select pg_notification_queue_usage() as used');
  expect(rows[0].used).toBeGreaterThan(0.9);
}, 60_000);
