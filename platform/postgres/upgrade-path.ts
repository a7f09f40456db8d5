import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { RunnerOption } from 'node-pg-migrate';
import type pg from 'pg';

const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

/** Version of this program, `MAJOR.MINOR.PATCH`. */
export const RELEASE: string = manifest.version;

const NEEDS = /_needs-(\d+\.\d+\.\d+)$/;

/** Returns whether a release is older than another. */
export const isOlder = (release: string, than: string): boolean =>
  release.localeCompare(than, 'en', { numeric: true }) < 0;

/** Selects migrations that need a later release than this one, by their names (migrations/README.md). */
const needingLaterThan = (migrations: readonly string[], release: string) =>
  migrations.flatMap((migration) => {
    const needed = NEEDS.exec(migration)?.[1];
    return needed !== undefined && isOlder(release, needed) ? [{ migration, needed }] : [];
  });

/** Returns why this release cannot run on a database; null if it can. `ran`: the migrations that have run. */
export function whyTooOld(ran: readonly string[], release: string): string | null {
  const [first] = needingLaterThan(ran, release);
  return first === undefined
    ? null
    : `a later version made the tables: migration ${first.migration} needs Doorplate ${first.needed} or later, and this is ${release}; start that version, or this one on the backup of before`;
}

/** The condition of a row `p` of `work.process` whose process is alive: its heartbeat's session is connected. */
export const IS_ALIVE = `exists (
  select from pg_stat_activity a where a.application_name = 'doorplate heartbeat ' || p.process_id)`;

/** Only rows with a session, because others belong to processes that have exited. */
const PROCESSES = `
  select format('process %s (--role %s) of version %s', p.process_id, p.role, p.release) as who, coalesce(p.release, '0.0.0') as release
  from work.process p
  where ${IS_ALIVE}
  order by p.process_id`;

/** Returns which running process forbids pending migrations; null if none does. */
export async function whyNotBeside(
  client: pg.ClientBase,
  pending: readonly string[],
): Promise<string | null> {
  const { rows: made } = await client.query(`select where to_regclass('work.process') is not null`);
  if (made.length === 0) return null;
  const { rows } = await client.query<{ who: string; release: string }>(PROCESSES);
  for (const { who, release } of rows) {
    const [first] = needingLaterThan(pending, release);
    if (first === undefined) continue;
    return `migration ${first.migration} cannot run beside processes before ${first.needed}, and ${who} runs: replace all of those by ${first.needed} first, or stop them, then start this one again`;
  }
  return null;
}

/** Returns which running process is of a release before this one; null if none is. */
export async function olderProcess(client: pg.ClientBase | pg.Pool): Promise<string | null> {
  const { rows } = await client.query<{ who: string; release: string }>(PROCESSES);
  return rows.find(({ release }) => isOlder(release, RELEASE))?.who ?? null;
}

type Strategy = NonNullable<RunnerOption['migrationLoaderStrategies']>[number];

/** First line of a file whose statements run one by one, outside a transaction (migrations/README.md). */
const NO_TRANSACTION = /^-- No transaction\b/;
/** A concurrent index build may wait for long queries, because no other query waits for it. */
const WAIT_FOR_LOCKS = 'set lock_timeout = 0';
const WAIT_BRIEFLY = 'reset lock_timeout';

/** Loads migrations for node-pg-migrate. */
export const sqlFiles: Strategy = {
  extensions: ['.sql'],
  loader: (paths) =>
    Promise.all(
      paths.map(async (path) => {
        const sql = await readFile(path, 'utf8');
        const outside = statementsOutside(sql);
        const statements = outside === null ? [sql] : [WAIT_FOR_LOCKS, ...outside, WAIT_BRIEFLY];
        return {
          id: path,
          filePaths: [path],
          actions: {
            up: (pgm) => {
              if (outside !== null) pgm.noTransaction();
              for (const statement of statements) pgm.sql(statement);
            },
            down: false,
          },
        };
      }),
    ),
};

/** Splits a file that runs outside a transaction into its statements, each ending with its line; null if it runs in one. */
export const statementsOutside = (sql: string): readonly string[] | null =>
  NO_TRANSACTION.test(sql) ? sql.split(/;\s*$/m).filter((text) => text.trim() !== '') : null;

/** Lists a folder's migrations in order. */
export const migrationNames = (directory: string): string[] =>
  readdirSync(directory)
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .sort();

/** A fresh database begins with it. It stands for the migrations of 0.2.0. */
const BASELINE = '0200_baseline';
const LAST_OF_0_2_0 = '0091_forgotten-names';
/** Migrations of builds between 0.2.0 and 0.3.0, which nobody released. */
const UNRELEASED = /^0(?:09[2-9]|1\d\d)_/;

/** Returns the names of migrations with the baseline in place of those that it stands for. */
export const baselined = (names: readonly string[]): readonly string[] =>
  names.includes(LAST_OF_0_2_0)
    ? [...new Set([BASELINE, ...names.filter((name) => name > LAST_OF_0_2_0)])].sort()
    : names;

export const isBaselineDue = (name: string, recorded: readonly string[]): boolean =>
  name === BASELINE && recorded.includes(LAST_OF_0_2_0) && !recorded.includes(BASELINE);

/** Records the baseline as run in a database that 0.2.0 has migrated. */
export async function recordBaseline(client: pg.ClientBase): Promise<void> {
  await client.query('insert into public.doorplate_migrations (name, run_on) values ($1, now())', [BASELINE]);
}

/** Returns why the program's migrations cannot follow those of a database; null if they can. */
export function whyNoUpgrade(recorded: readonly string[], names: readonly string[]): string | null {
  if (!names.includes(BASELINE)) return null;
  const unreleased = recorded.find((name) => UNRELEASED.test(name));
  if (unreleased !== undefined)
    return `the database was migrated by a build between 0.2.0 and 0.3.0 that was not released (migration ${unreleased}): restore the backup of 0.2.0, or start on an empty database`;
  if (recorded.length > 0 && recorded.every((name) => name < LAST_OF_0_2_0))
    return 'the database is older than 0.2.0: start Doorplate 0.2.0 on it once, then this release';
  return null;
}
