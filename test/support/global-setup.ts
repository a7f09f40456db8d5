import { chmodSync, rmSync } from 'node:fs';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { startEmbeddedPostgres } from '../../platform/embedded/embedded-postgres.ts';
import { migrate } from '../../platform/postgres/migrate.ts';
import { createLogger } from '../../platform/telemetry/log.ts';
import { administer, withDatabase } from './database.ts';
import { removeLeftovers, TEMPORARY_PREFIX } from './leftovers.ts';
import { makeTemporaryFolder } from './temporary-folder.ts';

/**
 * Starts one PostgreSQL for the whole run: the one that `DATABASE_URL` names, otherwise an embedded one in a
 * temporary folder. A migrated template database is created in it once; `testDatabase()` copies that.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startServer();
  const prefix = `doorplate_test_${process.pid}_${Date.now().toString(36)}_`;
  const template = `${prefix}template`;
  try {
    await administer(server.adminUrl, `CREATE DATABASE ${template}`);
    await migrate(withDatabase(server.adminUrl, template));
  } catch (error) {
    await server.stop();
    throw error;
  }
  project.provide('testServer', { adminUrl: server.adminUrl, template, prefix });
  return async () => {
    await dropAll(server.adminUrl, prefix);
    await server.stop();
  };
}

interface Server {
  readonly adminUrl: string;
  stop(): Promise<void>;
}

async function startServer(): Promise<Server> {
  const { DATABASE_URL } = process.env;
  if (DATABASE_URL !== undefined) return { adminUrl: DATABASE_URL, stop: async () => {} };
  await removeLeftovers();
  const dataDir = makeTemporaryFolder(TEMPORARY_PREFIX);
  // When root runs the tests, PostgreSQL runs as another user and must be able to enter.
  chmodSync(dataDir, 0o755);
  const log = createLogger({ level: 'warn', destination: 'stderr' });
  const postgres = await startEmbeddedPostgres({ dataDir, log, durable: false });
  return {
    adminUrl: postgres.url,
    stop: async () => {
      await postgres.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

async function dropAll(adminUrl: string, prefix: string): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ datname: string }>(
      'SELECT datname FROM pg_database WHERE starts_with(datname, $1)',
      [prefix],
    );
    for (const { datname } of rows) await client.query(`DROP DATABASE IF EXISTS ${datname} WITH (FORCE)`);
  } finally {
    await client.end();
  }
}
