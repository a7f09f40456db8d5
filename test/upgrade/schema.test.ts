import pg from 'pg';
import { expect, it } from 'vitest';
import { migrate } from '../../platform/postgres/migrate.ts';
import { emptyDatabase } from '../support/database.ts';
import { startSurroundings } from '../support/everything.ts';
import { loadDatabase, readRecorded } from './recorded.ts';
import { describeSchema } from './schema.ts';

const recorded020 = async () => {
  const around = await startSurroundings();
  const { database } = readRecorded('0.2.0', around);
  await around.close();
  return database;
};

it('an upgraded 0.2.0 has the schema of a fresh install', async () => {
  const [upgraded, fresh] = [await emptyDatabase(), await emptyDatabase()];
  await loadDatabase(upgraded.url, await recorded020());
  await migrate(upgraded.url);
  await migrate(fresh.url);
  expect(await describeSchema(upgraded.url)).toEqual(await describeSchema(fresh.url));
  for (const database of [upgraded, fresh]) await database.drop();
});

it.each([
  [
    'an unreleased build',
    '0150_snapshots-by-day',
    /was not released \(migration 0150_snapshots-by-day\): restore/,
  ],
  ['a release before 0.2.0', null, /older than 0\.2\.0: start Doorplate 0\.2\.0 on it once/],
])('refuses the database of %s unchanged, and names the way', async (_, further, message) => {
  const database = await emptyDatabase();
  await loadDatabase(database.url, await recorded020());
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  if (further === null)
    await client.query(`delete from doorplate_migrations where name > '0030' and name < '0200'`);
  else await client.query('insert into doorplate_migrations (name, run_on) values ($1, now())', [further]);
  const state = async () => [
    await describeSchema(database.url),
    (await client.query('select * from doorplate_migrations order by id')).rows,
  ];
  const before = await state();
  await expect(migrate(database.url)).rejects.toThrow(message);
  expect(await state()).toEqual(before);
  await client.end();
  await database.drop();
});
