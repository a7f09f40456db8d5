import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runner } from 'node-pg-migrate';
import pg from 'pg';

/** A server that does not answer at all is told as such. */
const CONNECT_MS = 10_000;
const MIGRATIONS = fileURLToPath(new URL('../migrations', import.meta.url));

/** A migration that PostgreSQL refused. Its message is one line that names the file and the place in it. */
export class MigrationError extends Error {}

export interface MigrateOptions {
  readonly directory?: string;
  /** Names of the migrations that may run, without `.sql`; all if missing. */
  readonly only?: readonly string[];
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
 * Brings a database's schema up to date: runs the files of `migrations/` (its README tells the format) that
 * have not run yet, all in one transaction, so that a failed start leaves nothing half made.
 *
 * Any number of processes may call it at once: the first does the work under a lock of an empty table, which a login
 * without rights on it cannot take; the others wait for it and find nothing to do.
 * @returns the names of the migrations that this call ran, in order
 * @throws MigrationError, or pg's own error where the server cannot be reached
 */
export async function migrate(
  databaseUrl: string,
  { directory = MIGRATIONS, only }: MigrateOptions = {},
): Promise<readonly string[]> {
  const missing = only?.filter((name) => !existsSync(join(directory, `${name}.sql`))) ?? [];
  if (missing.length > 0) {
    throw new MigrationError(
      `a later version made the tables: this one has no migration ${missing.join(', ')}`,
    );
  }
  if (!existsSync(directory)) throw new MigrationError(`the migrations folder ${directory} is missing`);
  const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: CONNECT_MS });
  // A backend that dies reaches the caller through the query in flight; unheard, it would end the process.
  client.on('error', () => {});
  await client.connect();
  const guard = new pg.Client({ connectionString: databaseUrl, application_name: 'doorplate migrate' });
  guard.on('error', () => {});
  await guard.connect();
  const progress: Progress = { migration: null };
  try {
    await lockOut(guard);
    const ran = await runner({
      dbClient: client,
      dir: directory,
      ignorePattern: `(?!${only === undefined ? '.*' : `(?:${only.join('|')})`}\\.sql$).*`,
      migrationsTable: 'doorplate_migrations',
      direction: 'up',
      singleTransaction: true,
      noLock: true,
      logger: listener(progress),
    });
    return ran.map(({ name }) => name);
  } catch (error) {
    throw new MigrationError(describe(error, progress), { cause: error });
  } finally {
    await client.end();
    await guard.end();
  }
}

/** Two that make the table at once: one of them gets an error of a catalogue's unique index. */
const MADE_BY_ANOTHER = ['23505', '42P07'];

/** Waits until no other process migrates, and keeps others waiting until the connection ends. */
async function lockOut(guard: pg.Client): Promise<void> {
  await guard.query('create table if not exists public.doorplate_migrating ()').catch((error: unknown) => {
    if (!MADE_BY_ANOTHER.includes((error as { code?: string }).code ?? '')) throw error;
  });
  await guard.query('begin');
  await guard.query('lock table public.doorplate_migrating in exclusive mode');
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
  const { detail, position } = error as { detail?: string; position?: string };
  const place = position === undefined ? '' : ` at character ${position}`;
  return `migration ${migration} failed${place}: ${message}${detail === undefined ? '' : ` (${detail})`}`;
}
