import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type pg from 'pg';
import pino from 'pino';
import { sql } from 'slonik';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createPostgresEventStore } from '../../event-store/postgres/store.ts';
import {
  connectClient,
  createClient,
  endClient,
  openPool,
  withSettings,
} from '../../platform/postgres/pool.ts';
import { createSlonik } from '../../platform/postgres/slonik.ts';
import { withSynchronousCommit } from '../../platform/postgres/transactions.ts';
import { eventually } from '../support/eventually.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
beforeAll(async () => {
  stack = await startTestStack();
});
afterAll(() => stack.close());

/** The statements that hang on the lock of a test. */
const hanging = async (): Promise<number> =>
  (
    await stack.rows(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and state = 'active'`,
    )
  ).length;

it.each([
  ['plans no scan of a whole table where there is an index', 'enable_seqscan', 'off'],
  ['calls no function that another user has put into public', 'search_path', 'pg_catalog'],
  ['plans one process for a query', 'max_parallel_workers_per_gather', '0'],
  ['counts days of UTC where the server has another time zone', 'TimeZone', 'UTC'],
])('%s, also for composed reads', async (_, setting, value) => {
  const url = withSettings(stack.url, '-c TimeZone=America/New_York');
  const [pool, composed] = [openPool(url, pino({ level: 'silent' }), {}), await createSlonik(url)];
  const { rows } = await pool.query('select current_setting($1) as value', [setting]);
  expect([
    rows[0].value,
    await composed.oneFirst(sql.unsafe`select current_setting(${setting}) as value`),
  ]).toEqual([value, value]);
  await pool.end();
  await composed.end();
});

it('reads values as text in one form, whatever the settings of the role', async () => {
  const foreign = {
    search_path: 'public',
    TimeZone: 'America/New_York',
    DateStyle: 'German, DMY',
    IntervalStyle: 'sql_standard',
    bytea_output: 'escape',
    extra_float_digits: '-15',
  };
  const [names] = await stack.rows(
    `select format('%I in database %I', current_user, current_database()) as role`,
  );
  for (const [setting, value] of Object.entries(foreign)) {
    await stack.rows(`alter role ${names?.role} set ${setting} = '${value}'`);
  }
  const pool = openPool(stack.url, pino({ level: 'silent' }), { max: 1 });
  const client = createClient(stack.url, 'test');
  const composed = await createSlonik(stack.url);
  await client.connect();
  const values = `select concat_ws(' ', '2026-03-04 05:06:07.08+00'::timestamptz, '-1 day 2 hours'::interval,
    '\\x00ff'::bytea, 0.1::float8 + 0.2::float8, current_setting('search_path')) as value`;
  const read = [
    (await pool.query(values)).rows[0].value,
    (await client.query(values)).rows[0].value,
    await composed.oneFirst(
      sql.unsafe(Object.freeze(Object.assign([values], { raw: Object.freeze([values]) }))),
    ),
  ];
  await Promise.all([pool.end(), client.end(), composed.end()]);
  await stack.rows(`alter role ${names?.role} reset all`);
  const expected = '2026-03-04 05:06:07.08+00 -1 days +02:00:00 \\x00ff 0.30000000000000004 pg_catalog';
  expect(read).toEqual([expected, expected, expected]);
});

it('frees the locks of a process that freezes within a transaction', async () => {
  const pool = openPool(stack.url, pino({ level: 'silent' }), { max: 1 });
  const { rows } = await pool.query(`show idle_in_transaction_session_timeout`);
  expect(rows).toEqual([{ idle_in_transaction_session_timeout: '3s' }]);
  await pool.end();
});

it('ends a statement in the server once its caller has given it up', async () => {
  const pool = openPool(stack.url, pino({ level: 'silent' }), { max: 1, query_timeout: 100 });
  const locker = await stack.session('begin; lock table work.rate in access exclusive mode');
  await expect(pool.query('select * from work.rate')).rejects.toThrow('Query read timeout');
  await eventually('no statement hangs', hanging, (count) => count === 0);
  await locker.query('rollback');
  await pool.end();
});

it('ends a read of the event store in the server once its caller has given it up', async () => {
  const store = createPostgresEventStore({ url: stack.url, now: () => stack.clock.now(), deadlineMs: 100 });
  const locker = await stack.session('begin; lock table eventlog.event in access exclusive mode');
  await expect(store.head()).rejects.toThrow('Query read timeout');
  await eventually('no read hangs', hanging, (count) => count === 0);
  await locker.query('rollback');
  await store.close();
});

it.each(['in', 'between'])(
  'survives the loss of a connection %s the statements of a transaction',
  async (when) => {
    const pool = openPool(stack.url, pino({ level: 'silent' }), { max: 1 });
    const lost = withSynchronousCommit(pool, async (client) => {
      const { rows } = await client.query('select pg_backend_pid() as pid');
      const statement = when === 'in' ? client.query('select pg_sleep(60)') : null;
      void statement?.catch(() => undefined);
      const ended = new Promise((resolve) => (client as pg.Client).once('end', resolve));
      await stack.pool.query('select pg_terminate_backend($1)', [rows[0].pid]);
      await expect
        .poll(
          async () => (await stack.rows(`select from pg_stat_activity where pid = ${rows[0].pid}`)).length,
        )
        .toBe(0);
      // A statement before it would fail by the broken pipe on a busy machine.
      await ended;
      await (statement ?? client.query('select 1'));
    });
    await expect(lost).rejects.toThrow(/terminat|not queryable/);
    expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    await pool.end();
  },
);

it('reports a connection that is ended while it is being made', async () => {
  // Accepts and never answers, as a server that is starting.
  const silent = createServer();
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const client = createClient(`postgres://x@127.0.0.1:${port}/x`, 'a test');
  client.on('error', () => undefined);
  const connecting = connectClient(client).catch((error: Error) => error.message);
  await once(silent, 'connection');
  await endClient(client);
  expect(await connecting).toBe('the connection ended before it was made');
  silent.close();
});
