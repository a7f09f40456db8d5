import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { openRuntime, type Runtime } from '../../bin/runtime.ts';
import { loadConfig } from '../../platform/config/config.ts';
import { startEmbeddedPostgres } from '../../platform/embedded/embedded-postgres.ts';
import { createLogger } from '../../platform/telemetry/log.ts';
import { companyRecord } from './company-record.ts';
import { makeDataFolder, removeDataFolder } from './data-folder.ts';
import { prepareServing, type Serving } from './serving.ts';

type Role = 'api' | 'workers';

/** One api and one workers process on a PostgreSQL of their own, all in a temporary folder. */
export interface Installation extends Readonly<Record<Role, Serving>> {
  readonly runtime: Runtime;
  readonly postgresPid: number;
  /** URL of an endpoint that accepts everything. */
  readonly endpoint: string;
  /** Ends everything and removes the folder. */
  end(): Promise<void>;
}

/** Ceilings that no load reaches: limits are contracts, and not what is measured. */
export const NO_CEILINGS = {
  API_REQUESTS_PER_SECOND: '100000',
  ENRICHMENT_INTAKE_PER_MINUTE: '100000000',
  ENRICHMENT_OUTSTANDING: '100000000',
  // The limit of a visitor stays: each capture of a load comes from another.
  CAPTURES_PER_SECOND: '100000',
  CAPTURES_PER_SECOND_PER_TRACKER: '100000',
  REVEALS_PER_SECOND: '100000',
};
const DIRECTORY = { cidr: '20.0.0.0/8', ...companyRecord(1) };

/** `more`: further variables of the processes. @throws EmbeddedPostgresError, Error with the log of a process that ended */
export async function startInstallation(more: Readonly<Record<string, string>>): Promise<Installation> {
  const folder = makeDataFolder();
  const undo: (() => unknown)[] = [() => removeDataFolder(folder)];
  const end = async (): Promise<void> => {
    for (let step = undo.pop(); step; step = undo.pop()) await step();
  };
  try {
    const log = createLogger({ level: 'error', destination: 'stderr' });
    const postgres = await startEmbeddedPostgres({ dataDir: folder, log });
    undo.push(() => postgres.stop());
    const receiver = await startReceiver();
    undo.push(receiver.end);
    const directory = join(folder, 'directory.jsonl');
    writeFileSync(directory, JSON.stringify(DIRECTORY));
    const env = {
      ...NO_CEILINGS,
      DATABASE_URL: postgres.url,
      MASTER_KEY: randomBytes(32).toString('base64'),
      LOG_LEVEL: 'error',
      ENRICHMENT_DIRECTORY: directory,
      WEBHOOK_STARTS_PER_SECOND: '100000',
      WEBHOOK_ALLOW_NETWORKS: '127.0.0.0/8',
      WEBHOOK_ALLOW_HTTP: '1',
      WEBHOOK_ALLOW_PORTS: String(receiver.port),
      ...more,
    };
    const folderOf = (name: Role | 'command'): string => {
      mkdirSync(join(folder, name));
      return join(folder, name);
    };
    const started = async (role: Role): Promise<Serving> => {
      const serving = await prepareServing({ role, dataDir: folderOf(role), env });
      undo.push(() => serving.stop());
      serving.start();
      await serving.ready();
      return serving;
    };
    const workers = await started('workers');
    const api = await started('api');
    const config = loadConfig({ ...env, DATA_DIR: folderOf('command') });
    const runtime = await openRuntime(config, log, 'join');
    undo.push(() => runtime.close());
    const endpoint = `http://127.0.0.1:${receiver.port}/`;
    return { runtime, postgresPid: postgres.pid, endpoint, api, workers, end };
  } catch (error) {
    await end();
    throw error;
  }
}

async function startReceiver(): Promise<{ port: number; end(): Promise<void> }> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(204).end());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const end = async (): Promise<void> => {
    server.closeAllConnections();
    server.close();
  };
  return { port, end };
}
