import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';

/** What `global-setup.ts` hands to every test file. */
export interface TestServer {
  /** A database of the server in which other databases can be made; nothing is ever stored in it. */
  readonly adminUrl: string;
  /** The migrated database that every test database is a copy of. */
  readonly template: string;
  /** What the names of this run's databases begin with, so that the run can remove them all. */
  readonly prefix: string;
}

declare module 'vitest' {
  interface ProvidedContext {
    testServer: TestServer;
  }
}

export interface TestDatabase {
  readonly url: string;
  /** Removes it, whoever is still connected. What is not dropped goes with the end of the run. */
  drop(): Promise<void>;
}

/**
 * A database of one's own with all migrations applied and nothing in it, in some 0.2 s: call it in `beforeAll`
 * and drop it in `afterAll`.
 */
export async function testDatabase(): Promise<TestDatabase> {
  const { adminUrl, template, prefix } = inject('testServer');
  const name = `${prefix}${randomUUID().replaceAll('-', '')}`;
  await administer(adminUrl, `CREATE DATABASE ${name} TEMPLATE ${template}`);
  return {
    url: withDatabase(adminUrl, name),
    drop: () => administer(adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

/** A database without any tables: no migration has run in it. */
export async function emptyDatabase(): Promise<TestDatabase> {
  const { adminUrl, prefix } = inject('testServer');
  const name = `${prefix}${randomUUID().replaceAll('-', '')}`;
  await administer(adminUrl, `CREATE DATABASE ${name} TEMPLATE template0`);
  return {
    url: withDatabase(adminUrl, name),
    drop: () => administer(adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

/** A database that holds what another holds now. Nobody may be connected to that one. */
export async function copyDatabase(url: string): Promise<TestDatabase> {
  const { adminUrl, prefix } = inject('testServer');
  const name = `${prefix}${randomUUID().replaceAll('-', '')}`;
  await administer(adminUrl, `CREATE DATABASE ${name} TEMPLATE ${new URL(url).pathname.slice(1)}`);
  return {
    url: withDatabase(adminUrl, name),
    drop: () => administer(adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

/** The same server's URL for another of its databases. */
export function withDatabase(url: string, name: string): string {
  const other = new URL(url);
  other.pathname = `/${name}`;
  return other.href;
}

/** Runs one statement outside any test's database, on a connection of its own. */
export async function administer(adminUrl: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
