import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import pino from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../platform/clock/clock.ts';
import { enterLeases } from '../../platform/leases/leases.ts';
import { MigrationError, migrate } from '../../platform/postgres/migrate.ts';
import { RELEASE } from '../../platform/postgres/upgrade-path.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { until } from '../support/until.ts';

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
    await client.query('DROP TABLE IF EXISTS doorplate_migrations, doorplate_repeatable, visit, gate');
    return () => rmSync(directory, { recursive: true });
  });
  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  const write = (name: string, sql: string) => writeFileSync(join(directory, name), sql);

  it('runs numbered SQL files in order, each once, including functions and several statements', async () => {
    write('README.md', 'not a migration');
    write('0002_visit_place.sql', 'ALTER TABLE public.visit ADD place text;');
    write(
      '0001_visit.sql',
      'CREATE TABLE public.visit (id int);\nCREATE OR REPLACE FUNCTION public.one() RETURNS int AS $$ SELECT 1; $$ LANGUAGE sql;',
    );
    expect(await migrate(database.url, { directory })).toEqual(['0001_visit', '0002_visit_place']);
    expect(await migrate(database.url, { directory })).toEqual([]);
    await client.query('SELECT id, place, one() FROM visit');
  });

  it('lets many processes start at once: one runs the migrations', async () => {
    write('0001_visit.sql', 'CREATE TABLE public.visit (id int);');
    const runs = await Promise.all(Array.from({ length: 8 }, () => migrate(database.url, { directory })));
    expect(runs.flat()).toEqual(['0001_visit']);
  });

  it('rolls back a migration that fails, names it, and keeps the earlier ones', async () => {
    write('0001_visit.sql', 'CREATE TABLE public.visit (id int);');
    write('0002_gate.sql', 'CREATE TABLE public.gate (id int);\nALTER TABLE public.gate ADD name nonsense;');
    const failure = await migrate(database.url, { directory }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(MigrationError);
    expect((failure as Error).message).toBe(
      'migration 0002_gate failed at character 69: type "nonsense" does not exist',
    );
    const { rows } = await client.query("SELECT to_regclass('visit') AS visit, to_regclass('gate') AS gate");
    expect(rows).toEqual([{ visit: 'visit', gate: null }]);
    write('0002_gate.sql', 'CREATE TABLE public.gate (id int);');
    expect(await migrate(database.url, { directory })).toEqual(['0002_gate']);
  });

  it('releases its table lock while another session holds one, and retries', async () => {
    write('0001_visit.sql', 'CREATE TABLE public.visit (id int);');
    await migrate(database.url, { directory });
    write('0002_visit.sql', 'ALTER TABLE public.visit ADD place text;');
    const reader = new pg.Client({ connectionString: database.url });
    await reader.connect();
    await reader.query('BEGIN; SELECT * FROM visit');
    const migrating = migrate(database.url, { directory });
    const waits = "SELECT FROM pg_locks WHERE relation = 'visit'::regclass AND NOT granted";
    await until('the migration waits', async () => (await client.query(waits)).rowCount === 1);
    await client.query('INSERT INTO visit VALUES (1)');
    expect((await reader.query('SELECT FROM visit')).rowCount).toBe(1);
    await reader.query('COMMIT');
    expect(await migrating).toEqual(['0002_visit']);
    await reader.end();
  });

  it('builds an index beside writers from a file without a transaction, also after an interrupted run', async () => {
    write('0001_visit.sql', 'CREATE TABLE public.visit (id int);\nINSERT INTO public.visit VALUES (1), (1);');
    await migrate(database.url, { directory });
    const index = (unique: string) =>
      `-- No transaction\nDROP INDEX CONCURRENTLY IF EXISTS public.visit_id;\nCREATE ${unique} INDEX CONCURRENTLY visit_id ON public.visit (id);\n`;
    write('0002_visit.sql', index('UNIQUE'));
    await expect(migrate(database.url, { directory })).rejects.toThrow(/0002_visit failed: could not create/);
    write('0002_visit.sql', index(''));
    const runs = await Promise.all(Array.from({ length: 4 }, () => migrate(database.url, { directory })));
    expect(runs.flat()).toEqual(['0002_visit']);
    const { rows } = await client.query(
      "SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = 'visit_id'::regclass",
    );
    expect(rows).toEqual([{ valid: true }]);
  });

  it('starts on a database that a later release has migrated', async () => {
    write('0001_visit.sql', 'CREATE TABLE public.visit (id int);');
    write('0002_visit_needs-0.3.0.sql', 'ALTER TABLE public.visit ADD place text;');
    await migrate(database.url, { directory, release: '0.4.0' });
    rmSync(join(directory, '0002_visit_needs-0.3.0.sql'));
    expect(await migrate(database.url, { directory, release: '0.3.0' })).toEqual([]);
  });

  it('refuses a database whose migrations need a later release, and names the release', async () => {
    write('0001_visit_needs-0.10.0.sql', 'CREATE TABLE public.visit (id int);');
    await migrate(database.url, { directory, release: '0.10.0' });
    await expect(migrate(database.url, { directory, release: '0.9.1' })).rejects.toThrow(
      /0001_visit_needs-0.10.0 needs Doorplate 0.10.0 or later, and this is 0.9.1; start that version/,
    );
  });

  it('runs no migration beside a running process that is older than the migration allows', async () => {
    write('0001_visit_needs-9.0.0.sql', 'CREATE TABLE public.visit (id int);');
    const log = pino({ level: 'silent' });
    const old = await enterLeases({ url: database.url, role: 'workers', clock: systemClock, log });
    await expect(migrate(database.url, { directory, release: '9.0.0' })).rejects.toThrow(
      `process ${old.processId} (--role workers) of version ${RELEASE} runs: replace all of those by 9.0.0 first`,
    );
    await old.stop();
    expect(await migrate(database.url, { directory, release: '9.0.0' })).toHaveLength(1);
  });

  describe('with SQL beside TypeScript', () => {
    const writeFunction = (sql: string) => {
      mkdirSync(join(directory, 'processors/visits'), { recursive: true });
      write('processors/visits/visits.sql', sql);
    };
    const answering = (text: string) =>
      `CREATE OR REPLACE FUNCTION public.visits() RETURNS text AS $$ SELECT '${text}'; $$ LANGUAGE sql;`;
    const answer = async () => (await client.query('SELECT visits() AS answer')).rows[0].answer;
    const start = (release?: string) =>
      migrate(database.url, { directory, root: directory, ...(release && { release }) });

    it('runs it after the migrations, and again only once it has changed', async () => {
      write('0001_visit.sql', 'CREATE TABLE public.visit (id int);');
      writeFunction(answering('first'));
      expect(await start()).toEqual(['0001_visit']);
      expect(await answer()).toBe('first');
      await client.query(answering('by hand'));
      expect(await start()).toEqual([]);
      expect(await answer()).toBe('by hand');
      writeFunction(answering('second'));
      await start();
      expect(await answer()).toBe('second');
    });

    it('leaves what a later release has run', async () => {
      writeFunction(answering('of the later release'));
      await start('0.4.0');
      writeFunction(answering('of the earlier release'));
      await start('0.3.0');
      expect(await answer()).toBe('of the later release');
      await start('0.5.0');
      expect(await answer()).toBe('of the earlier release');
    });

    it('names a file that fails, and runs it again at the next start', async () => {
      writeFunction(
        'CREATE OR REPLACE FUNCTION public.visits() RETURNS nonsense AS $$ SELECT 1; $$ LANGUAGE sql;',
      );
      await expect(start()).rejects.toThrow(
        /migration processors\/visits\/visits.sql failed: type "nonsense"/,
      );
      writeFunction(answering('mended'));
      await start();
      expect(await answer()).toBe('mended');
    });
  });
});
