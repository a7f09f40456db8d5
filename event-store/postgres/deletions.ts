import type pg from 'pg';
import { pause } from '../../platform/clock/waiting.ts';
import { batchLoader } from '../../platform/limits/loaders.ts';
import { inTransaction } from '../../platform/postgres/transactions.ts';
import {
  type EventStore,
  type ForgetNamesOptions,
  StoreUnavailable,
  WrongExpectedRevision,
} from '../port.ts';
import type { Query } from './read-stream.ts';

const DELETE_ROWS = 2_000;
/** Above every revision. */
const ALL = 2 ** 31 - 1;

interface Expiring {
  readonly stream: string;
  readonly last: number;
}

/**
 * Creates `EventStore.expire`: streams that are to be deleted while a statement is under way share the next one. `now`: the time of
 * the deletion, milliseconds.
 */
export function createExpire(query: Query, now: () => number): EventStore['expire'] {
  const expire = batchLoader(async (wanted: readonly Expiring[]) => {
    const names = wanted.map(({ stream }) => stream);
    const rows = await query('expire', EXPIRE, [names, wanted.map(({ last }) => last), new Date(now())]);
    const revisions = new Map(rows.map(({ name, revision }): [string, number] => [name, revision]));
    const isPast = ({ stream, last }: Expiring): boolean => (revisions.get(stream) ?? -1) > last;
    const expired = wanted.filter((one) => revisions.has(one.stream) && !isPast(one));
    if (expired.length > 0)
      await deleteAll(
        query,
        expired.map(({ stream }) => stream),
      );
    return wanted.map((one) =>
      isPast(one) ? new WrongExpectedRevision(one.stream, revisions.get(one.stream) ?? null) : null,
    );
  });
  return async (stream, last) => {
    await expire({ stream, last });
  };
}

/** The writers' lock is needed because a concurrent append would not see that its stream expires. */
const EXPIRE = `
  with head as materialized (
         select name, revision from eventlog.stream
         where name = any ($1) and (select eventlog.lock_writer()) for update),
       done as (
         update eventlog.stream s set expired = true, expired_at = coalesce(s.expired_at, $3)
         from head join unnest($1::text[], $2::int[]) as w (name, last) using (name)
         where s.name = head.name and head.revision <= w.last)
  select name, revision from head`;

/** Deletes the events of streams that have expired. */
async function deleteAll(query: Query, streams: readonly string[]): Promise<void> {
  const [row] = await query('delete_all', DELETE_ALL, [streams]);
  if (row?.deleted === DELETE_ROWS) for (const stream of streams) await deleteBefore(query, stream, ALL);
}

const DELETE_ALL = `
  with deleted as (
    delete from eventlog.event where position = any (array(
      select e.position from unnest($1::text[]) as s (name)
      cross join lateral (
        select position from eventlog.event where stream = s.name order by revision limit ${DELETE_ROWS}) e
      limit ${DELETE_ROWS})) returning 1)
  select count(*)::int as deleted from deleted`;

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
