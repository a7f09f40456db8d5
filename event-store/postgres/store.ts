import pg from 'pg';
import { endPool } from '../../platform/end-postgres.ts';
import { serialiseAppend } from '../append-check.ts';
import { isHidden } from '../hidden.ts';
import {
  type EventStore,
  type FollowOptions,
  type Position,
  type ReadOptions,
  type RecordedEvent,
  StoreUnavailable,
  WrongExpectedRevision,
} from '../port.ts';
import { createCommitter } from './committer.ts';
import { createFollower } from './follower.ts';
import { forgetNames } from './names.ts';
import { createPages, PAGE } from './pages.ts';
import { COLUMNS, toRecordedEvent } from './rows.ts';

export interface PostgresEventStoreOptions {
  readonly url: string;
  /** Returns milliseconds since the epoch, for expiry. */
  readonly now: () => number;
  /** Milliseconds after which an unanswered append counts as an unknown outcome. Default 4,000. */
  readonly deadlineMs?: number;
  /** Returns whether another process may follow the log and needs notifications. Default: yes. */
  readonly hasOtherListeners?: () => boolean;
  /** Called for each failed read of the log, with the position that it started after; the read is retried. */
  readonly onStall?: (error: Error, after: Position | null) => void;
}

const DELETE_ROWS = 2_000;

/** Creates the embedded event store in the schema `eventlog` of a migrated PostgreSQL database. */
export const createPostgresEventStore = (options: PostgresEventStoreOptions): EventStore => {
  const { url, now, deadlineMs = 4_000, hasOtherListeners = () => true, onStall = () => undefined } = options;
  const pool = new pg.Pool({
    connectionString: url,
    max: 8,
    application_name: 'doorplate read',
    // It writes only deletions, and losing one in a server crash is harmless because its consequences are lost too.
    // A plan cached while the log was small must not scan a large log or a long stream.
    options: '-c synchronous_commit=off -c enable_seqscan=off -c enable_sort=off -c enable_bitmapscan=off',
    connectionTimeoutMillis: 2_000,
    query_timeout: deadlineMs,
  });
  pool.on('error', () => undefined);
  const follower = createFollower({ url, pool, now, hasOtherListeners, onStall });
  const committer = createCommitter({ url, deadlineMs, committed: follower.committed });

  const query = async <R extends pg.QueryResultRow>(name: string, text: string, values: unknown[]) => {
    try {
      return (await pool.query<R>({ name, text, values })).rows;
    } catch (error) {
      throw new StoreUnavailable(String(error), { cause: error });
    }
  };

  const pageOf = createPages(query);

  const readAlone = (stream: string, backwards: boolean, from: number, size: number) =>
    query(
      backwards ? 'read_backwards' : 'read_forwards',
      `select ${COLUMNS} from eventlog.event e join eventlog.stream s on s.name = e.stream
       where e.stream = $1 and not s.expired and e.revision >= s.truncated_before
         and e.revision ${backwards ? '<=' : '>='} $2
       order by e.revision ${backwards ? 'desc' : 'asc'} limit $3`,
      [stream, from, size],
    );

  async function* readStream(stream: string, read: ReadOptions = {}): AsyncGenerator<RecordedEvent> {
    const backwards = read.direction === 'backwards';
    let from = read.from ?? (backwards ? 2 ** 31 - 1 : 0);
    let left = read.limit ?? Number.POSITIVE_INFINITY;
    while (left > 0) {
      const size = Math.min(left, PAGE);
      // A read with a limit needs few rows, so it does not share a statement; backward reads never do.
      const alone = backwards || read.limit !== undefined;
      const rows = await (alone ? readAlone(stream, backwards, from, size) : pageOf(stream, from));
      const instant = now();
      for (const event of rows.map(toRecordedEvent)) {
        from = event.revision + (backwards ? -1 : 1);
        if (!read.includeExpired && isHidden(event, instant)) continue;
        left -= 1;
        yield event;
      }
      if (rows.length < size) return;
    }
  }

  const deleteBefore = async (stream: string, revision: number): Promise<void> => {
    let deleted = DELETE_ROWS;
    while (deleted === DELETE_ROWS) {
      const rows = await query(
        'delete_before',
        `delete from eventlog.event where position in (
           select position from eventlog.event where stream = $1 and revision < $2
           order by revision limit ${DELETE_ROWS}) returning 1`,
        [stream, revision],
      );
      deleted = rows.length;
    }
  };

  let closing: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    await committer.close();
    await follower.close();
    await endPool(pool);
  };

  return {
    append: async (stream, expected, events) =>
      committer.append(stream, expected, serialiseAppend(stream, events)),
    readStream,
    follow: (follow: FollowOptions) => follower.follow(follow),
    head: async () => {
      const [row] = await query<{ head: string | null }>(
        'head',
        'select max(position) as head from eventlog.event',
        [],
      );
      return row?.head ? (BigInt(row.head) as Position) : null;
    },
    expire: async (stream, last) => {
      const rows = await query<{ revision: number }>(
        'expire',
        // The writers' lock is needed because a concurrent append would not see that the stream expires.
        `with head as (select name, revision from eventlog.stream
                       where name = $1 and (select eventlog.lock_writer()) for update),
              done as (update eventlog.stream s set expired = true, expired_at = coalesce(s.expired_at, $3) from head
                       where s.name = head.name and head.revision <= $2)
         select revision from head`,
        [stream, last, new Date(now())],
      );
      const revision = rows[0]?.revision;
      if (revision === undefined) return;
      if (revision > last) throw new WrongExpectedRevision(stream, revision);
      await deleteBefore(stream, revision + 1);
    },
    isExpired: async (stream) => {
      const rows = await query('is_expired', 'select from eventlog.stream where name = $1 and expired', [
        stream,
      ]);
      return rows.length > 0;
    },
    forgetNames: (options) => forgetNames(pool, now(), options),
    truncateBefore: async (stream, revision) => {
      await query(
        'truncate',
        `update eventlog.stream set truncated_before = greatest(truncated_before, least($2, revision + 1))
         where name = $1`,
        [stream, revision],
      );
      await deleteBefore(stream, revision);
    },
    close: () => {
      closing ??= close();
      return closing;
    },
  };
};
