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

interface Runs {
  readonly process_id: string;
  readonly role: string;
  readonly release: string | null;
}

/** A row without its session is one of a process that has ended. The column is new in 0.2.0. */
const RUNNING = `
  select p.process_id, p.role, to_jsonb(p) ->> 'release' as release from work.process p
  where exists (select from pg_stat_activity a where a.application_name = 'doorplate heartbeat ' || p.process_id)
  order by p.process_id`;

/** Which running process forbids migrations that have not run yet; null: none. */
export const whyNotBeside = async (
  client: pg.ClientBase,
  pending: readonly string[],
): Promise<string | null> => {
  const { rows: made } = await client.query(`select where to_regclass('work.process') is not null`);
  if (made.length === 0) return null;
  const { rows } = await client.query<Runs>(RUNNING);
  for (const { process_id, role, release } of rows) {
    const [first] = needingLaterThan(pending, release);
    if (first === undefined) continue;
    const version = release === null ? 'a version before 0.2.0' : `version ${release}`;
    return `migration ${first.migration} cannot run beside processes before ${first.needed}, and process ${process_id} (--role ${role}) of ${version} runs: replace all of those by ${first.needed} first, or stop them, then start this one again`;
  }
  return null;
};
