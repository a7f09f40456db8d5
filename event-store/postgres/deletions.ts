import type pg from 'pg';
import { pause } from '../../platform/clock/waiting.ts';
import { inTransaction } from '../../platform/postgres/transactions.ts';
import { type ForgetNamesOptions, StoreUnavailable, WrongExpectedRevision } from '../port.ts';
import type { Query } from './read-stream.ts';

const DELETE_ROWS = 2_000;

/** Deletes a stream whose last revision is `last`, as `EventStore.expire`. `at`: the time of the deletion. */
export async function expireStream(query: Query, stream: string, last: number, at: Date): Promise<void> {
  const rows = await query(
    'expire',
    // The writers' lock is needed because a concurrent append would not see that the stream expires.
    `with head as (select name, revision from eventlog.stream
                   where name = $1 and (select eventlog.lock_writer()) for update),
          done as (update eventlog.stream s set expired = true, expired_at = coalesce(s.expired_at, $3) from head
                   where s.name = head.name and head.revision <= $2)
     select revision from head`,
    [stream, last, at],
  );
  const revision: number | undefined = rows[0]?.revision;
  if (revision === undefined) return;
  if (revision > last) throw new WrongExpectedRevision(stream, revision);
  await deleteBefore(query, stream, revision + 1);
}

/** Deletes the events of a stream before a revision: of those that are there, and not of those that are appended meanwhile. */
export async function truncateStream(query: Query, stream: string, revision: number): Promise<void> {
  const [row] = await query(
    'truncate',
    `update eventlog.stream
     set truncated_before = greatest(truncated_before, least($2, revision + 1))
     where name = $1 returning truncated_before`,
    [stream, revision],
  );
  if (row) await deleteBefore(query, stream, row.truncated_before);
}

/**
 * Deletes the events of a stream before a revision; each statement begins after what the one before has deleted, and after as long a
 * pause: appends wait for the same disk, and a stream may have millions.
 */
async function deleteBefore(query: Query, stream: string, revision: number): Promise<void> {
  for (let after = -1; ; ) {
    const begun = performance.now();
    const rows = await query(
      'delete_before',
      `with deleted as (
         delete from eventlog.event where position = any (array(
           select position from eventlog.event where stream = $1 and revision < $2 and revision > $3
           order by revision limit ${DELETE_ROWS})) returning revision)
       select count(*)::int as deleted, max(revision) as last from deleted`,
      [stream, revision, after],
    );
    const { deleted, last } = rows[0] as { deleted: number; last: number };
    if (deleted < DELETE_ROWS) return;
    after = last;
    await pause(performance.now() - begun);
  }
}

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
export async function forgetNames(
  pool: pg.Pool,
  query: Query,
  now: number,
  { prefixes, before, successorOf }: ForgetNamesOptions,
): Promise<number> {
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
}

const namesOf = (rows: readonly NameRow[]): string[] => rows.map(({ name }) => name);

/** Dates streams that an earlier version deleted without a date. */
async function date(pool: pg.Pool, names: readonly string[], now: number): Promise<void> {
  if (names.length === 0) return;
  await pool.query(
    'update eventlog.stream set expired_at = $2 where name = any ($1) and expired_at is null',
    [names, new Date(now)],
  );
}

async function forget(
  pool: pg.Pool,
  names: readonly string[],
  successorOf: ForgetNamesOptions['successorOf'],
): Promise<number> {
  if (names.length === 0) return 0;
  // The lock precedes the statement's snapshot, which therefore includes every successor that an append has created.
  return inTransaction(pool, 'begin; select eventlog.lock_writer()', async (client) => {
    const { rowCount } = await client.query(
      `delete from eventlog.stream s using unnest($1::text[], $2::text[]) as f (name, successor)
       where s.name = f.name and s.expired
         and not exists (select from eventlog.stream n where n.name = f.successor)`,
      [names, names.map(successorOf)],
    );
    return rowCount ?? 0;
  });
}
