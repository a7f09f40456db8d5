import { createPgDriverFactory } from '@slonik/pg-driver';
import { createPool, type DatabasePool, type DriverFactory, type DriverTypeParser } from 'slonik';
import { within } from '../clock/waiting.ts';
import { createSemaphore } from '../limits/semaphore.ts';
import { POOLED, withSettings } from './pool.ts';

const iso = (text: string): string =>
  new Date(text.replace(' ', 'T').replace(/([+-]\d\d)$/, '$1:00')).toISOString();

/** Overrides slonik's parsers: bigint sums stay below 2^53 here, and instants are ISO 8601 as in the API. */
const typeParsers: readonly DriverTypeParser[] = [
  { name: 'int8', parse: Number },
  { name: 'numeric', parse: (text: string) => text },
  { name: 'timestamptz', parse: iso },
];

export const POOL_SIZE = 4;

/** PostgreSQL's own limit of a statement, and later ours for its answer, milliseconds. */
const STATEMENT_MS = 4_000;
const ANSWER_MS = 4_300;
/** How long a connection that does not answer is waited for once more, twice. */
const ENDING_MS = 200;

/** The driver of PostgreSQL with a time limit: slonik has none, and a connection that the network has dropped never answers. */
const limitedDriver: DriverFactory = async (configuration) => {
  const driver = await createPgDriverFactory()(configuration);
  return {
    createClient: async () => {
      const client = await driver.createClient();
      return {
        ...client,
        // As pg's own limit says it. slonik closes a connection whose query has failed.
        query: (...query) => within(client.query(...query), ANSWER_MS, () => new Error('Query read timeout')),
      };
    },
  };
};

/** Lets no query wait inside the pool, which may forget it for ever when PostgreSQL crashes, and with it a read model. */
export function queueQueries(db: DatabasePool): DatabasePool {
  const connections = createSemaphore({ limit: POOL_SIZE });
  const queued =
    <Args extends unknown[], Result>(query: (...args: Args) => Promise<Result>) =>
    (...args: Args): Promise<Result> =>
      connections.enter(() => query(...args));
  return {
    ...db,
    any: queued(db.any) as DatabasePool['any'],
    maybeOne: queued(db.maybeOne) as DatabasePool['maybeOne'],
    maybeOneFirst: queued(db.maybeOneFirst) as DatabasePool['maybeOneFirst'],
    one: queued(db.one) as DatabasePool['one'],
    oneFirst: queued(db.oneFirst) as DatabasePool['oneFirst'],
  };
}

/** slonik refuses most of the modes that pg takes for `verify-full`, and has its own word for it. */
function withSlonikMode(url: string): string {
  const dsn = new URL(url);
  if (!['disable', 'no-verify'].includes(dsn.searchParams.get('sslmode') ?? 'disable'))
    dsn.searchParams.set('sslmode', 'require');
  return dsn.href;
}

/** Creates the pool for complex, rare queries; hot paths use pg with named statements. */
export async function createSlonik(url: string): Promise<DatabasePool> {
  const db = await createPool(withSlonikMode(withSettings(url, POOLED)), {
    maximumPoolSize: POOL_SIZE,
    typeParsers,
    connectionTimeout: 2_000,
    statementTimeout: STATEMENT_MS,
    gracefulTerminationTimeout: ENDING_MS,
    driverFactory: limitedDriver,
    captureStackTrace: false,
    // The default, DISCARD ALL at each release, costs more than most of the queries.
    resetConnection: () => Promise.resolve(),
  });
  return queueQueries(db);
}
