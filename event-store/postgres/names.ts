import type pg from 'pg';
import { pause } from '../../platform/pause.ts';
import { type ForgetNamesOptions, StoreUnavailable } from '../port.ts';
import { deleteBefore } from './delete-events.ts';
import type { Query } from './pages.ts';

const PAGE = 1_000;

interface NameRow {
  readonly name: string;
  /** Events before this revision are left of a deletion that was interrupted; null: none are. */
  readonly left_before: number | null;
  readonly undated: boolean;
  readonly old: boolean;
}

/** Above every revision. */
const ALL = 2 ** 31 - 1;

const NAMES = `
  select name, expired and expired_at is null as undated, expired and coalesce(expired_at < $2, false) as old,
         case when exists (select from eventlog.event e where e.stream = s.name and e.revision < deleted.before)
              then deleted.before end as left_before
  from eventlog.stream s,
       lateral (select case when expired then ${ALL} else truncated_before end as before) deleted
  where name > $1 order by name limit ${PAGE}`;

/**
 * Scans all stream names in pages, forgets those that may be forgotten and completes deletions of events that a restart has
 * interrupted. `now` in milliseconds.
 */
export const forgetNames = async (
  pool: pg.Pool,
  query: Query,
  now: number,
  { prefixes, before, successorOf }: ForgetNamesOptions,
): Promise<number> => {
  let forgotten = 0;
  try {
    for (let after = ''; ; ) {
      const begun = performance.now();
      const { rows } = await pool.query<NameRow>({
        name: 'names_of_streams',
        text: NAMES,
        values: [after, new Date(before)],
      });
      for (const { name, left_before } of rows) {
        if (left_before !== null) await deleteBefore(query, name, left_before);
      }
      const mine = rows.filter(({ name }) => prefixes.some((prefix) => name.startsWith(prefix)));
      await date(pool, namesOf(mine.filter(({ undated }) => undated)), now);
      forgotten += await forget(pool, namesOf(mine.filter(({ old }) => old)), successorOf);
      const last = rows.at(-1);
      if (last === undefined || rows.length < PAGE) return forgotten;
      after = last.name;
      // Appends wait for the lock, and there may be millions of names.
      await pause(performance.now() - begun);
    }
  } catch (error) {
    throw new StoreUnavailable(String(error), { cause: error });
  }
};

const namesOf = (rows: readonly NameRow[]): string[] => rows.map(({ name }) => name);

/** Dates streams that an earlier version deleted without a date. */
const date = async (pool: pg.Pool, names: readonly string[], now: number): Promise<void> => {
  if (names.length === 0) return;
  await pool.query(
    'update eventlog.stream set expired_at = $2 where name = any ($1) and expired_at is null',
    [names, new Date(now)],
  );
};

const forget = async (
  pool: pg.Pool,
  names: readonly string[],
  successorOf: ForgetNamesOptions['successorOf'],
): Promise<number> => {
  if (names.length === 0) return 0;
  const client = await pool.connect();
  let deleted: number | null;
  try {
    // The lock precedes the statement's snapshot, which therefore includes every successor that an append has created.
    await client.query('begin; select eventlog.lock_writer()');
    ({ rowCount: deleted } = await client.query(
      `delete from eventlog.stream s using unnest($1::text[], $2::text[]) as f (name, successor)
       where s.name = f.name and s.expired
         and not exists (select from eventlog.stream n where n.name = f.successor)`,
      [names, names.map(successorOf)],
    ));
    await client.query('commit');
  } catch (error) {
    client.release(true);
    throw error;
  }
  client.release();
  return deleted ?? 0;
};
