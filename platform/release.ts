import { readFileSync } from 'node:fs';
import type pg from 'pg';

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/** Version of this program, `MAJOR.MINOR.PATCH`. */
export const RELEASE: string = manifest.version;

const NEEDS = /_needs-(\d+\.\d+\.\d+)$/;

/** Returns whether a release is older than another. null means before 0.2.0. */
export const isOlder = (release: string | null, than: string): boolean => {
  const other = than.split('.').map(Number);
  const parts = (release ?? '0.0.0').split('.').map(Number);
  const at = parts.findIndex((part, index) => part !== other[index]);
  return at >= 0 && (parts[at] ?? 0) < (other[at] ?? 0);
};

/** Selects migrations that need a later release than this one, by their names (migrations/README.md). */
const needingLaterThan = (migrations: readonly string[], release: string | null) =>
  migrations.flatMap((migration) => {
    const needed = NEEDS.exec(migration)?.[1];
    return needed !== undefined && isOlder(release, needed) ? [{ migration, needed }] : [];
  });

/** Returns why this release cannot run on a database; null if it can. `ran`: the migrations that have run. */
export const whyTooOld = (ran: readonly string[], release: string): string | null => {
  const [first] = needingLaterThan(ran, release);
  return first === undefined
    ? null
    : `a later version made the tables: migration ${first.migration} needs Doorplate ${first.needed} or later, and this is ${release}; start that version, or this one on the backup of before`;
};

interface Running {
  readonly who: string;
  /** null: before 0.2.0. */
  readonly release: string | null;
}

/** Only rows with a session, because others belong to processes that have exited. */
const PROCESSES = `
  select format('process %s (--role %s) of version %s', p.process_id, p.role, coalesce(p.release, 'before 0.2.0')) as who,
    p.release
  from work.process p
  where exists (select from pg_stat_activity a where a.application_name = 'doorplate heartbeat ' || p.process_id)
  order by p.process_id`;
/** Session names of processes before 0.2.0, which did not record their release. */
const SESSIONS_BEFORE_RELEASES = `
  select format('PostgreSQL session %s ("%s") of a version before 0.2.0', pid, application_name) as who, null as release
  from pg_stat_activity where datname = current_database()
    and (application_name in ('doorplate', 'doorplate progress') or application_name ~ '^doorplate (lead|heartbeat) ')
  order by pid`;
const RELEASE_COLUMN = `
  select from information_schema.columns
  where table_schema = 'work' and table_name = 'process' and column_name = 'release'`;

/** Returns which running process forbids pending migrations; null if none does. */
export const whyNotBeside = async (
  client: pg.ClientBase,
  pending: readonly string[],
): Promise<string | null> => {
  const { rowCount: hasReleases } = await client.query(RELEASE_COLUMN);
  const { rows } = await client.query<Running>(hasReleases === 1 ? PROCESSES : SESSIONS_BEFORE_RELEASES);
  for (const { who, release } of rows) {
    const [first] = needingLaterThan(pending, release);
    if (first === undefined) continue;
    return `migration ${first.migration} cannot run beside processes before ${first.needed}, and ${who} runs: replace all of those by ${first.needed} first, or stop them, then start this one again`;
  }
  return null;
};
