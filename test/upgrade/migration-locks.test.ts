import { readFileSync } from 'node:fs';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { MIGRATIONS } from '../../platform/postgres/migrate.ts';
import { baselined, migrationNames, statementsOutside } from '../../platform/postgres/upgrade-path.ts';
import { emptyDatabase, type TestDatabase } from '../support/database.ts';
import { startSurroundings } from '../support/everything.ts';
import { loadDatabase, readRecorded } from './recorded.ts';

/** A lock of rows is enough in the log: an append waits for its stream's row. */
const SCANNED_UNDER_LOCK = `
  select t.schemaname || '.' || t.relname as "table" from pg_stat_xact_user_tables t
  where t.relid = any ($1) and t.seq_scan > 0 and exists (
    select from pg_locks l where l.pid = pg_backend_pid() and l.relation = t.relid
      and (l.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
        or l.mode = 'RowExclusiveLock' and t.schemaname = 'eventlog'))
  order by 1`;

let database: TestDatabase;
let client: pg.Client;

/**
 * Runs SQL in a transaction. @returns the older tables that it read completely while they were locked against writes
 */
const scannedUnderLock = async (sql: string): Promise<string[]> => {
  const { rows: before } = await client.query("select oid from pg_class where relkind = 'r'");
  // Otherwise the next transaction's statistics begin with those of the last.
  await client.query('select pg_stat_force_next_flush()');
  await client.query('begin');
  await client.query(sql);
  const { rows } = await client.query(SCANNED_UNDER_LOCK, [before.map(({ oid }) => oid)]);
  await client.query('commit');
  return rows.map(({ table }) => table);
};

beforeAll(async () => {
  const around = await startSurroundings();
  const recorded = readRecorded('0.2.0', around);
  await around.close();
  database = await emptyDatabase();
  await loadDatabase(database.url, recorded.database);
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

it('no migration after 0.2.0 scans a table while it is locked against writes', async () => {
  const { rows: ran } = await client.query('select name from doorplate_migrations');
  const known = baselined(ran.map(({ name }) => name));
  const isNew = (name: string) => !known.includes(name);
  const found: Record<string, string[]> = {};
  for (const name of migrationNames(MIGRATIONS).filter(isNew)) {
    const sql = readFileSync(`${MIGRATIONS}/${name}.sql`, 'utf8');
    const outside = statementsOutside(sql);
    for (const statement of outside ?? []) await client.query(statement);
    const tables = outside === null ? await scannedUnderLock(sql) : [];
    if (tables.length > 0) found[name] = tables;
  }
  expect(found).toEqual({});
});

it.each([
  ['an index', 'create index on eventlog.event (type)'],
  ['a check of all rows', 'alter table eventlog.event add check (revision >= 0)'],
  [
    'a rewritten table',
    'alter table eventlog.event add column made_at timestamptz default clock_timestamp()',
  ],
  ['a moved column', 'alter table eventlog.event add column a text; update eventlog.event set a = type'],
  ['rows that are changed', 'update eventlog.event set type = type'],
])('the check of this test finds %s', async (_, sql) => {
  expect(await scannedUnderLock(sql)).toEqual(['eventlog.event']);
});

it.each([
  ['a column with a default', "alter table eventlog.event add column b text not null default 'b'"],
  ['a check of new rows', 'alter table eventlog.event add check (revision >= 0) not valid'],
])('the check of this test accepts %s', async (_, sql) => {
  expect(await scannedUnderLock(sql)).toEqual([]);
});
