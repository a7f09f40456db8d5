import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer as createSocketServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openRuntime, type Runtime } from '../../bin/runtime.ts';
import { loadConfig } from '../../platform/config/config.ts';
import { startEmbeddedPostgres } from '../../platform/embedded/embedded-postgres.ts';
import { folderOfDatabase } from '../../platform/embedded/location.ts';
import { createLogger } from '../../platform/telemetry/log.ts';
import { companyRecord } from './company-record.ts';

type Role = 'api' | 'workers';

/** One api and one workers process on a PostgreSQL of their own, all in a temporary folder. */
export interface Installation {
  readonly runtime: Runtime;
  readonly postgresPid: number;
  /** URL of the API. */
  readonly url: string;
  /** URL of an endpoint that accepts everything. */
  readonly endpoint: string;
  pidOf(role: Role): number;
  start(role: Role): Promise<void>;
  stop(role: Role): Promise<void>;
  /** Ends everything and removes the folder. */
  end(): Promise<void>;
}

/** Limits are contracts, and not what is measured. */
const NO_LIMITS = {
  API_REQUESTS_PER_SECOND: '100000',
  ENRICHMENT_INTAKE_PER_MINUTE: '100000000',
  ENRICHMENT_OUTSTANDING: '100000000',
  CAPTURES_PER_SECOND: '100000',
  CAPTURES_PER_SECOND_PER_TRACKER: '100000',
  REVEALS_PER_SECOND: '100000',
  WEBHOOK_STARTS_PER_SECOND: '100000',
};
const DIRECTORY = { cidr: '20.0.0.0/8', ...companyRecord(1) };
const PROGRAM = fileURLToPath(new URL('../../bin/doorplate.js', import.meta.url));
const READY_MS = 60_000;
const POLL_MS = 50;
const END_MS = 12_000;

/** `more`: further variables of the processes. @throws EmbeddedPostgresError, Error with the log of a process that ended */
export async function startInstallation(more: Readonly<Record<string, string>>): Promise<Installation> {
  const folder = mkdtempSync(join(tmpdir(), 'doorplate-capacity-'));
  // When started as root, PostgreSQL's own user must be able to enter it.
  chmodSync(folder, 0o755);
  const undo: (() => unknown)[] = [() => removeFolder(folder)];
  const end = async (): Promise<void> => {
    for (let step = undo.pop(); step; step = undo.pop()) await step();
  };
  try {
    const log = createLogger({ level: 'error', destination: 'stderr' });
    const postgres = await startEmbeddedPostgres({ dataDir: folder, log });
    undo.push(() => postgres.stop());
    const receiver = await startReceiver();
    undo.push(receiver.end);
    const [port, apiOps, workersOps] = await freePorts();
    const opsPorts = { api: apiOps, workers: workersOps };
    const directory = join(folder, 'directory.jsonl');
    writeFileSync(directory, JSON.stringify(DIRECTORY));
    const env = {
      ...NO_LIMITS,
      DATABASE_URL: postgres.url,
      MASTER_KEY: randomBytes(32).toString('base64'),
      PORT: String(port),
      LOG_LEVEL: 'error',
      ENRICHMENT_DIRECTORY: directory,
      WEBHOOK_ALLOW_NETWORKS: '127.0.0.0/8',
      WEBHOOK_ALLOW_HTTP: '1',
      WEBHOOK_ALLOW_PORTS: String(receiver.port),
      ...more,
    };
    const envOf = (role: Role | 'command') => ({
      ...env,
      ...(role === 'command' ? {} : { OPS_PORT: String(opsPorts[role]) }),
      DATA_DIR: join(folder, role),
    });
    const running = new Map<Role, ChildProcess>();
    const start = async (role: Role): Promise<void> => {
      mkdirSync(join(folder, role), { recursive: true });
      running.set(role, await startProcess(role, envOf(role), opsPorts[role]));
    };
    const stop = async (role: Role): Promise<void> => {
      const child = running.get(role);
      running.delete(role);
      if (child) await endProcess(child);
    };
    undo.push(() => Promise.all([stop('api'), stop('workers')]));
    await start('workers');
    await start('api');
    mkdirSync(join(folder, 'command'));
    const runtime = await openRuntime(loadConfig(envOf('command')), log, 'join');
    undo.push(() => runtime.close());
    return {
      runtime,
      postgresPid: postgres.pid,
      url: `http://127.0.0.1:${port}`,
      endpoint: `http://127.0.0.1:${receiver.port}/`,
      pidOf: (role) => running.get(role)?.pid ?? 0,
      start,
      stop,
      end,
    };
  } catch (error) {
    await end();
    throw error;
  }
}

function removeFolder(folder: string): void {
  const database = folderOfDatabase(folder);
  if (database !== null) rmSync(dirname(database), { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
}

async function startProcess(
  role: Role,
  env: Readonly<Record<string, string>>,
  opsPort: number | undefined,
): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['--max-semi-space-size=16', PROGRAM, 'serve', '--role', role], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let log = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    log = `${log}${text}`.slice(-2_000);
  });
  for (const deadline = performance.now() + READY_MS; performance.now() < deadline; await pause(POLL_MS)) {
    if (child.exitCode !== null) throw new Error(`the ${role} process ended: ${log.trim()}`);
    const answer = await fetch(`http://127.0.0.1:${opsPort}/readyz`).catch(() => null);
    if (answer?.status === 200) return child;
  }
  await endProcess(child);
  throw new Error(`the ${role} process was not ready within ${READY_MS / 1_000} s: ${log.trim()}`);
}

async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), END_MS);
  await ended;
  clearTimeout(timer);
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

/** Finds three ports that nothing listens on. */
async function freePorts(): Promise<number[]> {
  const servers = Array.from({ length: 3 }, () => createSocketServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => once(server.close(), 'close')));
  return ports;
}
