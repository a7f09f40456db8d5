import { readFileSync } from 'node:fs';
import type pg from 'pg';

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/** The version of this program, `MAJOR.MINOR.PATCH`. */
export const RELEASE: string = manifest.version;

const NEEDS = /_needs-(\d+\.\d+\.\d+)$/;

/** Whether a release is older than another one. One that is not known (null) is from before 0.2.0. */
export const isOlder = (release: string | null, than: string): boolean => {
  const other = than.split('.').map(Number);
  const parts = (release ?? '0.0.0').split('.').map(Number);
  const at = parts.findIndex((part, index) => part !== other[index]);
  return at >= 0 && (parts[at] ?? 0) < (other[at] ?? 0);
};

/** Of some migrations those that need a release later than this one, by their names (migrations/README.md). */
const needingLaterThan = (migrations: readonly string[], release: string | null) =>
  migrations.flatMap((migration) => {
    const needed = NEEDS.exec(migration)?.[1];
    return needed !== undefined && isOlder(release, needed) ? [{ migration, needed }] : [];
  });

/** Why this release cannot run on a database; null: it can. `ran`: the migrations that have run in it. */
export const whyTooOld = (ran: readonly string[], release: string): string | null => {
  const [first] = needingLaterThan(ran, release);
  return first === undefined
    ? null
    : `a later version made the tables: migration ${first.migration} needs Doorplate ${first.needed} or later, and this is ${release}; start that version, or this one on the backup of before`;
};

interface Running {
  readonly who: string;
  /** null: one before 0.2.0. */
  readonly release: string | null;
}

/** A row without its session is one of a process that has ended. */
const PROCESSES = `
  select format('process %s (--role %s) of version %s', p.process_id, p.role, coalesce(p.release, 'before 0.2.0')) as who,
    p.release
  from work.process p
  where exists (select from pg_stat_activity a where a.application_name = 'doorplate heartbeat ' || p.process_id)
  order by p.process_id`;
/** What processes before 0.2.0 called their sessions with the database; they did not tell their release. */
const SESSIONS_BEFORE_RELEASES = `
  select format('PostgreSQL session %s ("%s") of a version before 0.2.0', pid, application_name) as who, null as release
  from pg_stat_activity where datname = current_database()
    and (application_name in ('doorplate', 'doorplate progress') or application_name ~ '^doorplate (lead|heartbeat) ')
  order by pid`;
const TELLS_RELEASES = `
  select from information_schema.columns
  where table_schema = 'work' and table_name = 'process' and column_name = 'release'`;

/** Which running process forbids migrations that have not run yet; null: none. */
export const whyNotBeside = async (
  client: pg.ClientBase,
  pending: readonly string[],
): Promise<string | null> => {
  const { rowCount: tells } = await client.query(TELLS_RELEASES);
  const { rows } = await client.query<Running>(tells === 1 ? PROCESSES : SESSIONS_BEFORE_RELEASES);
  for (const { who, release } of rows) {
    const [first] = needingLaterThan(pending, release);
    if (first === undefined) continue;
    return `migration ${first.migration} cannot run beside processes before ${first.needed}, and ${who} runs: replace all of those by ${first.needed} first, or stop them, then start this one again`;
  }
  return null;
};
