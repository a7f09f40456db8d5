import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';

/** The values that `global-setup.ts` provides to every test file. */
export interface TestServer {
  /** A database of the server in which other databases can be created; it stores nothing. */
  readonly adminUrl: string;
  /** The migrated database that every test database copies. */
  readonly template: string;
  /** The prefix of this run's database names, so that the run can remove them all. */
  readonly prefix: string;
}

declare module 'vitest' {
  interface ProvidedContext {
    testServer: TestServer;
  }
}

export interface TestDatabase {
  readonly url: string;
  /** Drops it with its connections. The end of the run drops the rest. */
  drop(): Promise<void>;
}

/** Creates an empty, migrated database in some 20 ms: call it in `beforeAll` and drop it in `afterAll`. */
export async function testDatabase(): Promise<TestDatabase> {
  const { adminUrl, template, prefix } = inject('testServer');
  const name = `${prefix}${randomUUID().replaceAll('-', '')}`;
  await administer(adminUrl, `CREATE DATABASE ${name} TEMPLATE ${template}`);
  return {
    url: withDatabase(adminUrl, name),
    drop: () => administer(adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

/** Opens a pool. It ends before its connections have: dropping the database may still break them off, which is no error. */
export function testPool({ url }: Pick<TestDatabase, 'url'>, max?: number): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max });
  pool.on('error', () => undefined);
  return pool;
}

/** Creates a database without tables: no migration has run in it. */
export async function emptyDatabase(): Promise<TestDatabase> {
  const { adminUrl, prefix } = inject('testServer');
  const name = `${prefix}${randomUUID().replaceAll('-', '')}`;
  await administer(adminUrl, `CREATE DATABASE ${name} TEMPLATE template0`);
  return {
    url: withDatabase(adminUrl, name),
    drop: () => administer(adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

/** Copies a database, which must have no connections. */
export async function copyDatabase(url: string): Promise<TestDatabase> {
  const { adminUrl, prefix } = inject('testServer');
  const name = `${prefix}${randomUUID().replaceAll('-', '')}`;
  await administer(adminUrl, `CREATE DATABASE ${name} TEMPLATE ${new URL(url).pathname.slice(1)}`);
  return {
    url: withDatabase(adminUrl, name),
    drop: () => administer(adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

/** The URL of another database of the same server. */
export function withDatabase(url: string, name: string): string {
  const other = new URL(url);
  other.pathname = `/${name}`;
  return other.href;
}

/** Runs one statement on a separate connection, outside any test's database. */
export async function administer(adminUrl: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
