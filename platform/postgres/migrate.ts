import { createHash } from 'node:crypto';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { IDLE_TRANSACTION, openClient, requireSettings } from './pool.ts';
import {
  baselined,
  isBaselineDue,
  isOlder,
  migrationNames,
  RELEASE,
  recordBaseline,
  sqlFiles,
  whyNotBeside,
  whyNoUpgrade,
  whyTooOld,
} from './upgrade-path.ts';

/** SQL files that stand beside the TypeScript that calls their functions; those of `processors` may call those of `projections`. */
const BESIDE_TYPESCRIPT = ['projections/**/*.sql', 'processors/**/*.sql'];

/**
 * Runs the SQL files beside the TypeScript that have changed since they last ran (migrations/README.md), each in a
 * transaction of its own. An older release leaves what a newer one has run: its functions have the same meaning.
 * @param root the program's folder
 * @throws MigrationError
 */
async function runRepeatables(client: pg.ClientBase, root: string, release: string): Promise<void> {
  await client.query(
    'create table if not exists public.doorplate_repeatable (file text primary key, digest text not null, release text not null)',
  );
  const { rows } = await client.query<{ file: string; digest: string; release: string }>(
    'select file, digest, release from public.doorplate_repeatable',
  );
  const known = new Map(rows.map((row) => [row.file, row]));
  for (const file of BESIDE_TYPESCRIPT.flatMap((pattern) => globSync(pattern, { cwd: root }).sort())) {
    const sql = readFileSync(join(root, file), 'utf8');
    const digest = createHash('sha256').update(sql).digest('hex');
    const before = known.get(file);
    if (before && (before.digest === digest || isOlder(release, before.release))) continue;
    try {
      await client.query('begin');
      await client.query(sql);
      await client.query(
        `insert into public.doorplate_repeatable (file, digest, release) values ($1, $2, $3)
         on conflict (file) do update set digest = excluded.digest, release = excluded.release`,
        [file, digest, release],
      );
      await client.query('commit');
    } catch (error) {
      await client.query('rollback');
      throw new MigrationError(describe(error, { migration: file }), { cause: error });
    }
  }
}

const CONNECT_MS = 10_000;
/** Short, because a migration that waits for a table's lock blocks every later query of the table. */
const LOCK_MS = 500;
const LOCK_TRIES = 120;
/** Poll interval while another process migrates. */
const ANOTHER_MIGRATES_MS = 50;
const LOCK_NOT_AVAILABLE = '55P03';
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const MIGRATIONS = join(ROOT, 'migrations');

/** The database has no tables of the service, and the caller makes none. */
export class NoData extends Error {}

/** PostgreSQL rejected a migration. The message is one line that names the file and the position in it. */
export class MigrationError extends Error {}

export interface MigrateOptions {
  readonly directory?: string;
  /** Names of the migrations that may run, without `.sql`. Default: all. */
  readonly only?: readonly string[];
  /**
   * Folder of the program whose SQL beside TypeScript runs after the migrations. Default: this one; null, which runs none,
   * with `directory` or `only`.
   */
  readonly root?: string | null;
  /** Attempts, half a second each, to get a lock that another session holds. Default: 120. */
  readonly lockTries?: number;
  /** Version of the migrating program. Default: this one. */
  readonly release?: string;
  /** Whether tables are made in a database that has none. Default: true; false for commands. */
  readonly mayBegin?: boolean;
}

/** Reads the names of the migrations that have run, in order. */
export async function ranMigrations(client: pg.ClientBase): Promise<readonly string[]> {
  const { rows: made } = await client.query(
    `select where to_regclass('public.doorplate_migrations') is not null`,
  );
  if (made.length === 0) return [];
  const { rows } = await client.query<{ name: string }>(
    'select name from public.doorplate_migrations order by id',
  );
  return rows.map(({ name }) => name);
}

/**
 * Migrates a database: runs the files of `migrations/` (format: its README) that have not run yet, each in a transaction of
 * its own, so that its locks are released before the next. After a failure, the next start continues with the failed one.
 * SQL files beside their TypeScript follow, where they have changed.
 *
 * Concurrent calls are safe: the first migrates under a lock of an empty table, which logins without rights on it cannot
 * take; the others wait and find nothing to do.
 * @returns the names of the migrations that this call ran, in order
 * @throws NoData; NotDirect; MigrationError, also if this release cannot run on the database or beside another process; pg's own error if
 *   the server cannot be reached
 */
export async function migrate(
  databaseUrl: string,
  {
    directory = MIGRATIONS,
    only,
    root = directory === MIGRATIONS && only === undefined ? ROOT : null,
    lockTries = LOCK_TRIES,
    release = RELEASE,
    mayBegin = true,
  }: MigrateOptions = {},
): Promise<readonly string[]> {
  if (!existsSync(directory)) throw new MigrationError(`the migrations folder ${directory} is missing`);
  const all = migrationNames(directory);
  const refusal = whyNoUpgrade(only ?? [], all);
  if (refusal !== null) throw new MigrationError(refusal);
  const allowed = only && baselined(only);
  const names = all.filter((name) => allowed?.includes(name) ?? true);
  const missing = allowed?.filter((name) => !names.includes(name)) ?? [];
  if (missing.length > 0) {
    throw new MigrationError(
      `a later version made the tables: this one has no migration ${missing.join(', ')}`,
    );
  }
  const client = await openClient(databaseUrl, 'doorplate migrations', {
    settings: `-c lock_timeout=${LOCK_MS} -c idle_in_transaction_session_timeout=${IDLE_TRANSACTION}`,
    connectionTimeoutMillis: CONNECT_MS,
  });
  const guard = await openClient(databaseUrl, 'doorplate migrate');
  try {
    await requireSettings(client);
    if (!mayBegin && (await ranMigrations(client)).length === 0) throw new NoData();
    await lockOut(guard);
    const { recorded, pending, refusal: problem } = await planOf(client, names, release);
    if (problem !== null) throw new MigrationError(problem);
    if (names.some((name) => isBaselineDue(name, recorded))) await recordBaseline(client);
    if (pending.length > 0) await untilUnlocked(client, lockTries, () => runFiles(client, directory, names));
    if (root !== null) await runRepeatables(client, root, release);
    return pending;
  } finally {
    await client.end();
    await guard.end();
  }
}

/** What a start of this program would do to the tables of a database. */
export interface MigrationPlan {
  /** The migrations that have run; none: the database has no tables. */
  readonly recorded: readonly string[];
  readonly pending: readonly string[];
  /** Why the start would refuse; null if it would not. */
  readonly refusal: string | null;
}

/** Finds out what `migrate` would do, and changes nothing. */
export async function checkMigrations(databaseUrl: string): Promise<MigrationPlan> {
  const client = await openClient(databaseUrl, 'doorplate check', { connectionTimeoutMillis: CONNECT_MS });
  try {
    return await planOf(client, migrationNames(MIGRATIONS), RELEASE);
  } finally {
    await client.end();
  }
}

async function planOf(client: pg.Client, names: readonly string[], release: string): Promise<MigrationPlan> {
  const recorded = await ranMigrations(client);
  const before = baselined(recorded);
  const pending = names.filter((name) => !before.includes(name));
  const refusal =
    whyNoUpgrade(recorded, names) ??
    whyOutOfOrder(before, pending) ??
    whyTooOld(before, release) ??
    (await whyNotBeside(client, pending));
  return { recorded, pending, refusal };
}

/** A gap that is filled later would run after migrations that were written without it. */
function whyOutOfOrder(before: readonly string[], [first]: readonly string[]): string | null {
  const last = before.findLast((name) => first !== undefined && name > first);
  return last === undefined ? null : `migration ${first} is numbered below ${last}, which has run`;
}

async function runFiles(client: pg.Client, directory: string, names: readonly string[]): Promise<void> {
  const progress: Progress = { migration: null };
  // Most starts have nothing to run, and this takes a tenth of the time of a command.
  const { runner } = await import('node-pg-migrate');
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
      // The names that the baseline stands for remain recorded, so that 0.2.0 still runs on the database.
      checkOrder: false,
      logger: listener(progress),
    });
  } catch (error) {
    throw new MigrationError(describe(error, progress), { cause: error });
  }
}

/** Codes of creating the same table concurrently: one of the processes gets a catalogue conflict. */
const MADE_BY_ANOTHER = ['23505', '42P07'];

/**
 * Waits until no other process migrates, and locks others out until the connection ends. It polls, because a waiting query
 * would hold a snapshot for which `create index concurrently` would have to wait.
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

/** Repeats a run that could not get a lock in time; finished migrations do not run again. */
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

/** Collects the current file from node-pg-migrate's log, which reports it nowhere else. */
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
