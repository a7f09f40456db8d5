import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MigrationError, migrate } from '../../platform/migrate.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';

describe('migrate', () => {
  let directory: string;
  let database: TestDatabase;
  let client: pg.Client;

  beforeAll(async () => {
    database = await testDatabase();
    client = new pg.Client({ connectionString: database.url });
    await client.connect();
  });
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'doorplate-migrations-'));
    await client.query('DROP TABLE IF EXISTS doorplate_migrations, visit, gate');
    return () => rmSync(directory, { recursive: true });
  });
  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  const write = (name: string, sql: string) => writeFileSync(join(directory, name), sql);

  it('runs numbered SQL files in order, each once, and takes functions and several statements', async () => {
    write('README.md', 'not a migration');
    write('0002_visit_place.sql', 'ALTER TABLE visit ADD place text;');
    write(
      '0001_visit.sql',
      'CREATE TABLE visit (id int);\nCREATE OR REPLACE FUNCTION one() RETURNS int AS $$ SELECT 1; $$ LANGUAGE sql;',
    );
    expect(await migrate(database.url, { directory })).toEqual(['0001_visit', '0002_visit_place']);
    expect(await migrate(database.url, { directory })).toEqual([]);
    await client.query('SELECT id, place, one() FROM visit');
  });

  it('lets many processes start at once: one does the work', async () => {
    write('0001_visit.sql', 'CREATE TABLE visit (id int);');
    const runs = await Promise.all(Array.from({ length: 8 }, () => migrate(database.url, { directory })));
    expect(runs.flat()).toEqual(['0001_visit']);
  });

  it('keeps nothing of a start in which one migration fails, and names it', async () => {
    write('0001_visit.sql', 'CREATE TABLE visit (id int);');
    write('0002_gate.sql', 'CREATE TABLE gate (id nonsense);');
    const failure = await migrate(database.url, { directory }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(MigrationError);
    expect((failure as Error).message).toBe(
      'migration 0002_gate failed at character 23: type "nonsense" does not exist',
    );
    const { rows } = await client.query("SELECT to_regclass('visit') AS visit");
    expect(rows).toEqual([{ visit: null }]);
  });

  it('refuses a file numbered below one that has run', async () => {
    write('0002_visit.sql', 'CREATE TABLE visit (id int);');
    await migrate(database.url, { directory });
    write('0001_gate.sql', 'CREATE TABLE gate (id int);');
    await expect(migrate(database.url, { directory })).rejects.toThrow(/0001_gate is preceding already run/);
  });

  it('refuses a folder that is not there', async () => {
    await expect(migrate(database.url, { directory: join(directory, 'gone') })).rejects.toThrow(
      MigrationError,
    );
  });
});
