import { createPool, type DatabasePool, type DriverTypeParser } from 'slonik';
import { POOLED, withSettings } from './open-pool.ts';

const iso = (text: string): string =>
  new Date(text.replace(' ', 'T').replace(/([+-]\d\d)$/, '$1:00')).toISOString();

/** Overrides slonik's parsers: bigint sums stay below 2^53 here, and instants are ISO 8601 as in the API. */
const typeParsers: readonly DriverTypeParser[] = [
  { name: 'int8', parse: Number },
  { name: 'numeric', parse: (text: string) => text },
  { name: 'timestamptz', parse: iso },
];

/** Connections of the pool. `fairPool` has no more queries under way. */
export const POOL_SIZE = 4;

/** Creates the pool for complex, rare queries; hot paths use pg with named statements. */
export const createSlonik = (url: string): Promise<DatabasePool> =>
  createPool(withSettings(url, POOLED), {
    maximumPoolSize: POOL_SIZE,
    typeParsers,
    connectionTimeout: 2_000,
    statementTimeout: 4_000,
    captureStackTrace: false,
    // The default, DISCARD ALL at each release, costs more than most of the queries.
    resetConnection: () => Promise.resolve(),
  });
