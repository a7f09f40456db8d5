import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { migrate } from '../../platform/postgres/migrate.ts';
import { startApi, type TestApi } from '../support/api.ts';
import {
  answersOf,
  COMPANY,
  type Everything,
  reveal,
  type Surroundings,
  settled,
  startSurroundings,
  useEverything,
} from '../support/everything.ts';
import { collect, feed, makeTracker } from '../support/tracking.ts';
import { until } from '../support/until.ts';

let around: Surroundings;
let api: TestApi;
let used: Everything;
beforeAll(async () => {
  around = await startSurroundings();
  api = await startApi({ providers: [around.provider], env: around.env });
});
afterAll(async () => {
  await api?.close();
  await around?.close();
});

const OURS = `
  select format('%I.%I', n.nspname, c.relname) as "table" from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where c.relkind = 'r' and n.nspname in ('eventlog', 'read', 'work') and c.relname !~ '^only_one'`;

/** What a later release may leave in the database while this one runs (CONTRIBUTING.md). */
const expandTables = async (): Promise<void> => {
  const { rows } = await api.sql.query<{ table: string }>(OURS);
  expect(rows.length).toBeGreaterThan(40);
  for (const { table } of rows) {
    await api.sql.query(
      `alter table ${table} add column later_text text, add column later_number int not null default 7`,
    );
  }
  await api.sql.query(`
    create table read.later (id uuid primary key);
    insert into read.projection (name, position) values ('later', 3);
    insert into work.processor (name, position) values ('later', 3);
    insert into work.lease (name, number, process_id) values ('later', 1, gen_random_uuid());
    notify doorplate_projected, '{"later":"3"}'`);
};

/** Appends an event of a new type to every stream except those that the ledger audit reads. */
const appendLaterEvents = async (): Promise<number> => {
  const { store, clock } = api.runtime;
  const { rows } = await api.sql.query<{ name: string; revision: number }>(
    `select name, revision from eventlog.stream where not expired and name !~ '^(billing|reveal|expired)-'`,
  );
  for (const { name, revision } of rows) {
    const metadata = { $correlationId: 'c', $causationId: 'c', at: new Date(clock.now()).toISOString() };
    const event = { id: randomUUID(), type: 'later.Happened.v1', data: { later: true }, metadata };
    await store.append(name, revision, [event]);
  }
  return rows.length;
};

it('serves every feature on tables that a later release has expanded meanwhile', {
  timeout: 60_000,
}, async () => {
  // Database sessions keep plans and prepared statements from before.
  const key = await api.key();
  await api.post(key, COMPANY);
  await api.settled(key, COMPANY);
  await collect(api, await makeTracker(api, key), { ip: COMPANY });
  expect((await feed(api, key)).sessions).toHaveLength(1);
  await settled(api);
  await expandTables();
  used = await useEverything(api, around);
  const { told, report } = await answersOf(api, used);
  expect(told.filter(({ statusCode }) => statusCode >= 500)).toEqual([]);
  expect(report.differences).toEqual([]);
});

it('skips events of unknown types on any stream', { timeout: 60_000 }, async () => {
  const before = await answersOf(api, used);
  expect(await appendLaterEvents()).toBeGreaterThan(20);
  await settled(api);
  const without = (answers: typeof before) => answers.told.filter(({ url }) => !url.includes('usage'));
  const after = await answersOf(api, used);
  expect({ ...after, told: without(after) }).toEqual({ ...before, told: without(before) });
});

it('decides on streams with such events, and bills and delivers later events', async () => {
  const { key, tracker, webhook } = used;
  const { report: before } = await answersOf(api, used);
  const delivered = around.received('reveal.completed').length;
  const renamed = {
    method: 'PATCH',
    url: `/v1/webhooks/${webhook.id}`,
    payload: { name: 'renamed' },
  } as const;
  expect((await api.inject(key, renamed)).statusCode).toBe(200);
  const another = await makeTracker(api, key);
  await collect(api, another, { ip: COMPANY });
  expect((await collect(api, tracker, { ip: COMPANY, body: used.visit })).statusCode).toBe(204);
  const visits = (await feed(api, key)).sessions;
  expect(visits).toHaveLength(4);
  expect(await reveal(api, key, visits[3]?.session_id)).toMatchObject({ status: 'complete' });
  await until('it is delivered', () => around.received('reveal.completed').length > delivered);
  await settled(api);
  const { report } = await answersOf(api, used);
  expect(report).toMatchObject({ units: before.units + 1, differences: [] });
});

it('starts on such a database and finds nothing to migrate', async () => {
  expect(await migrate(api.runtime.databaseUrl)).toEqual([]);
});
