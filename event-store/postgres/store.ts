import { endPool, openPool } from '../../platform/postgres/pool.ts';
import {
  type EventStore,
  type FollowOptions,
  type StoreOptions,
  StoreUnavailable,
  serialiseAppend,
} from '../port.ts';
import { Committer } from './committer.ts';
import { createExpire, forgetNames, truncateStream } from './deletions.ts';
import { Follower } from './follower.ts';
import { createStreamReader, type Query, readHead } from './read-stream.ts';

export interface PostgresEventStoreOptions extends StoreOptions {
  /** Returns whether another process may follow the log and needs notifications. Default: yes. */
  readonly hasOtherListeners?: () => boolean;
}

/** A read that a lost connection fails is reported by its caller. */
const SILENT = { warn: () => undefined };

/** Creates the embedded event store in the schema `eventlog` of a migrated PostgreSQL database. */
export function createPostgresEventStore(options: PostgresEventStoreOptions): EventStore {
  const { url, now, deadlineMs = 4_000, hasOtherListeners = () => true, onStall = () => undefined } = options;
  const pool = openPool(url, SILENT, {
    max: 8,
    application_name: 'doorplate read',
    // It writes only deletions, and losing one in a server crash is harmless because its consequences are lost too.
    // A plan cached while the log was small must not scan a large log or a long stream.
    options: '-c synchronous_commit=off -c enable_sort=off -c enable_bitmapscan=off',
    connectionTimeoutMillis: 2_000,
    query_timeout: deadlineMs,
  });
  const follower = new Follower({ url, pool, now, hasOtherListeners, onStall });
  const committer = new Committer({
    url,
    deadlineMs,
    committed: () => follower.committed(),
  });

  const query: Query = async (name, text, values) => {
    try {
      return (await pool.query({ name, text, values })).rows;
    } catch (error) {
      throw new StoreUnavailable(String(error), { cause: error });
    }
  };

  let closing: Promise<void> | null = null;
  const close = async (): Promise<void> => {
    await committer.close();
    await follower.close();
    await endPool(pool);
  };

  return {
    // Appends commit in groups, one group after another.
    concurrentCommits: 1,
    append: async (stream, expected, events) =>
      committer.append(stream, expected, serialiseAppend(stream, events)),
    readStream: createStreamReader(query, now),
    follow: (follow: FollowOptions) => follower.follow(follow),
    head: () => readHead(query),
    expire: createExpire(query, now),
    truncateBefore: (stream, revision) => truncateStream(query, stream, revision),
    forgetNames: (options) => forgetNames(pool, query, now(), options),
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}
