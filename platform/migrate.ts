import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { runner } from 'node-pg-migrate';
import pg from 'pg';
import { migrationNames, sqlFiles } from './migration-files.ts';
import { RELEASE, whyNotBeside, whyTooOld } from './release.ts';

/** A server that does not answer at all is told as such. */
const CONNECT_MS = 10_000;
/** A migration that waits for a table's lock keeps all waiting who come to the table after it. */
const LOCK_MS = 500;
const LOCK_TRIES = 120;
/** How often a start looks whether the one that migrates is done. */
const ANOTHER_MIGRATES_MS = 50;
const LOCK_NOT_AVAILABLE = '55P03';
const MIGRATIONS = fileURLToPath(new URL('../migrations', import.meta.url));

/** A migration that PostgreSQL refused. Its message is one line that names the file and the place in it. */
export class MigrationError extends Error {}

export interface MigrateOptions {
  readonly directory?: string;
  /** Names of the migrations that may run, without `.sql`; all if missing. */
  readonly only?: readonly string[];
  /** How often a migration tries to get a lock that another session holds, half a second each time. Default: 120. */
  readonly lockTries?: number;
  /** Of the program that migrates. Default: of this one. */
  readonly release?: string;
}

/** Names of the migrations that have run in a database, in order. */
export const ranMigrations = async (client: pg.ClientBase): Promise<readonly string[]> => {
  const { rows: made } = await client.query(
    `select where to_regclass('public.doorplate_migrations') is not null`,
  );
  if (made.length === 0) return [];
  const { rows } = await client.query<{ name: string }>(
    'select name from public.doorplate_migrations order by id',
  );
  return rows.map(({ name }) => name);
};

/**
 * Brings a database's schema up to date: runs the files of `migrations/` (its README tells the format) that have not run
 * yet, each in a transaction of its own, so that what one locks is free again before the next begins. A start that fails
 * keeps those that have run; the next start goes on after them.
 *
 * Any number of processes may call it at once: the first does the work under a lock of an empty table, which a login
 * without rights on it cannot take; the others wait for it and find nothing to do.
 * @returns the names of the migrations that this call ran, in order
 * @throws MigrationError, also where this release cannot run on the database or beside another process; pg's own error
 *   where the server cannot be reached
 */
export async function migrate(
  databaseUrl: string,
  { directory = MIGRATIONS, only, lockTries = LOCK_TRIES, release = RELEASE }: MigrateOptions = {},
): Promise<readonly string[]> {
  if (!existsSync(directory)) throw new MigrationError(`the migrations folder ${directory} is missing`);
  const names = migrationNames(directory).filter((name) => only?.includes(name) ?? true);
  const missing = only?.filter((name) => !names.includes(name)) ?? [];
  if (missing.length > 0) {
    throw new MigrationError(
      `a later version made the tables: this one has no migration ${missing.join(', ')}`,
    );
  }
  const client = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: CONNECT_MS,
    options: `-c lock_timeout=${LOCK_MS}`,
  });
  // A backend that dies reaches the caller through the query in flight; unheard, it would end the process.
  client.on('error', () => {});
  await client.connect();
  const guard = new pg.Client({ connectionString: databaseUrl, application_name: 'doorplate migrate' });
  guard.on('error', () => {});
  await guard.connect();
  try {
    await lockOut(guard);
    const before = await ranMigrations(client);
    const pending = names.filter((name) => !before.includes(name));
    const problem = whyTooOld(before, release) ?? (await whyNotBeside(client, pending));
    if (problem !== null) throw new MigrationError(problem);
    await untilUnlocked(client, lockTries, () => runFiles(client, directory, names));
    return pending;
  } finally {
    await client.end();
    await guard.end();
  }
}

/** @throws MigrationError */
async function runFiles(client: pg.Client, directory: string, names: readonly string[]): Promise<void> {
  const progress: Progress = { migration: null };
  try {
    await runner({
      dbClient: client,
      dir: directory,
      ignorePattern: `(?!(?:${names.join('|')})\\.sql$).*`,
      migrationsTable: 'doorplate_migrations',
      migrationLoaderStrategies: [sqlFiles],
      direction: 'up',
      singleTransaction: false,
      noLock: true,
      logger: listener(progress),
    });
  } catch (error) {
    throw new MigrationError(describe(error, progress), { cause: error });
  }
}

/** Two that make the table at once: one of them gets an error of a catalogue's unique index. */
const MADE_BY_ANOTHER = ['23505', '42P07'];

/**
 * Waits until no other process migrates, and keeps others waiting until the connection ends. It asks again and again: a
 * query that waits has a snapshot, for whose end an index that is built beside appends would wait.
 */
async function lockOut(guard: pg.Client): Promise<void> {
  await guard.query('create table if not exists public.doorplate_migrating ()').catch((error: unknown) => {
    if (!MADE_BY_ANOTHER.includes((error as { code?: string }).code ?? '')) throw error;
  });
  for (;;) {
    await guard.query('begin');
    try {
      await guard.query('lock table public.doorplate_migrating in exclusive mode nowait');
      return;
    } catch (error) {
      if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE) throw error;
      await guard.query('rollback');
      await pause(ANOTHER_MIGRATES_MS);
    }
  }
}

/** Runs again what could not get a lock in time. What had run by then has not to run again. */
async function untilUnlocked(client: pg.Client, tries: number, run: () => Promise<void>): Promise<void> {
  for (let left = tries - 1; ; left -= 1) {
    try {
      return await run();
    } catch (error) {
      const { code } = (error as Error).cause as { code?: string };
      if (code !== LOCK_NOT_AVAILABLE || left <= 0) throw error;
      await client.query('rollback');
      await pause(LOCK_MS);
    }
  }
}

interface Progress {
  migration: string | null;
}

/** node-pg-migrate tells which file it is at in its log alone, which otherwise nobody wants to read. */
function listener(progress: Progress) {
  const info = (line: string) => {
    progress.migration = /^### MIGRATION (.+) \(UP\) ###$/.exec(line)?.[1] ?? progress.migration;
  };
  return { info, warn: () => {}, error: () => {} };
}

function describe(error: unknown, { migration }: Progress): string {
  const message = error instanceof Error ? error.message : String(error);
  if (migration === null) return `the migrations could not run: ${message}`;
  const { detail, position, code } = error as { detail?: string; position?: string; code?: string };
  if (code === LOCK_NOT_AVAILABLE) {
    return `migration ${migration} waits for a table that another session has locked: end that session (\`select pid, usename, state, query from pg_stat_activity\`), then start again`;
  }
  const place = position === undefined ? '' : ` at character ${position}`;
  return `migration ${migration} failed${place}: ${message}${detail === undefined ? '' : ` (${detail})`}`;
}
