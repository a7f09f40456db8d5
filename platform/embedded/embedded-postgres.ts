import { createHash, randomUUID } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from '../telemetry/log.ts';
import { type Binaries, databaseUrl, ensureCluster, ensureDatabase, findBinaries } from './cluster.ts';
import { type DatabaseLocation, findLocation } from './location.ts';
import {
  type Endpoint,
  ensureRunning,
  findEndpoint,
  findRunning,
  moveEndpoint,
  StartFailure,
  shutDown,
} from './postmaster.ts';
import { EmbeddedPostgresError, identify, isAlive, type ProcessIdentity, reason } from './processes.ts';

/**
 * Runs the action while no other process of this machine does so for the same folder. The lock is a socket in Linux's
 * abstract namespace: the kernel releases it when its process dies, so it is never stale.
 * @throws EmbeddedPostgresError if other processes held it for all of `patience` (milliseconds)
 */
async function exclusively<T>(folder: string, patience: number, action: () => Promise<T>): Promise<T> {
  const name = `\0doorplate-${createHash('sha256').update(folder).digest('hex').slice(0, 32)}`;
  const deadline = performance.now() + patience;
  let lock: Server | null;
  for (lock = await tryListen(name); lock === null; lock = await tryListen(name)) {
    if (performance.now() > deadline) {
      throw new EmbeddedPostgresError(`another process is busy starting or stopping PostgreSQL in ${folder}`);
    }
    await pause(25);
  }
  try {
    return await action();
  } finally {
    lock.close();
  }
}

function tryListen(name: string): Promise<Server | null> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(null) : reject(error),
    );
    server.listen({ path: name }, () => resolve(server));
  });
}

/** `own`: the one server, which keeps PostgreSQL running. `join`: a short-lived command. */
export type Mode = 'own' | 'join';

interface User extends ProcessIdentity {
  readonly id: string;
  readonly mode: Mode;
}

/**
 * Adds this process to the users of the data folder and removes dead ones. Call it and `leave` only under the folder's
 * mutex.
 * @returns the id for `leave`
 * @throws EmbeddedPostgresError naming the process that already owns the folder
 */
export function enter(file: string, mode: Mode, dataDir: string): string {
  const others = living(file);
  const owner = others.find((user) => user.mode === 'own');
  if (mode === 'own' && owner !== undefined) {
    throw new EmbeddedPostgresError(`the data folder ${dataDir} is in use by process ${owner.pid}`);
  }
  const me = identify(process.pid);
  if (me === null) throw new EmbeddedPostgresError('/proc does not show this process: set DATABASE_URL');
  const id = randomUUID();
  save(file, [...others, { ...me, id, mode }]);
  return id;
}

/** Removes an entry. @returns whether no process uses the folder any more */
export function leave(file: string, id: string): boolean {
  const others = living(file).filter((user) => user.id !== id);
  save(file, others);
  return others.length === 0;
}

function living(file: string): User[] {
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) as User[]).filter(isAlive);
  } catch {
    // Missing, or truncated by a machine crash, after which no user is alive.
    return [];
  }
}

function save(file: string, users: readonly User[]): void {
  const next = `${file}.${randomUUID()}`;
  writeFileSync(next, `${JSON.stringify(users)}\n`, { flag: 'wx', mode: 0o600 });
  renameSync(next, file);
}

const POLL_MS = 1_000;
const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 15_000;

/**
 * Restarts PostgreSQL whenever it is gone, with a delay that doubles per failure, until the signal aborts. Polling, rather than
 * waiting for the exit, also works for an adopted process.
 */
async function supervise(
  location: DatabaseLocation,
  restart: () => Promise<void>,
  log: EmbeddedPostgresOptions['log'],
  ending: AbortSignal,
): Promise<void> {
  let delay = FIRST_DELAY_MS;
  while (await sleep(POLL_MS, ending)) {
    if (findRunning(location) !== null) continue;
    log.warn('embedded PostgreSQL is gone; restarting it');
    try {
      await restart();
      delay = FIRST_DELAY_MS;
      log.warn('embedded PostgreSQL is running again');
    } catch (error) {
      log.error(`${reason(error)}; next try in ${delay / 1000} s`);
      if (!(await sleep(delay, ending))) return;
      delay = Math.min(delay * 2, MAX_DELAY_MS);
    }
  }
}

/** @returns false if it was aborted */
function sleep(milliseconds: number, ending: AbortSignal): Promise<boolean> {
  return pause(milliseconds, true, { signal: ending, ref: false }).catch(() => false);
}

export interface EmbeddedPostgresOptions {
  /** The product's data folder (`DATA_DIR`), created if missing. PostgreSQL uses its subfolder `postgres/`. */
  readonly dataDir: string;
  readonly log: Pick<Logger, 'info' | 'warn' | 'error'>;
  /** `own` (server, default): exclusive use of the folder. `join` (command): beside a server or alone. */
  readonly mode?: Mode;
  /** false only for tests: a machine crash may lose data, and more connections are allowed. */
  readonly durable?: boolean;
  /** Further PostgreSQL settings, for benchmarks that need more connections. */
  readonly moreSettings?: readonly string[];
  /** Folder for data and programs that PostgreSQL's user could not reach elsewhere when this process is root. */
  readonly sharedDir?: string;
}

export interface EmbeddedPostgres {
  /** URL of the product's database, as its superuser. Stays valid across restarts of PostgreSQL. */
  readonly url: string;
  readonly pid: number;
  /** Stops PostgreSQL unless another process uses it. Idempotent; never throws. */
  stop(): Promise<void>;
}

/** Allows for another process's initdb and recovery before this start. */
const START_PATIENCE_MS = 330_000;
/** Part of the ten seconds of the whole shutdown. */
const STOP_PATIENCE_MS = 2_000;
const SHUTDOWN_MS = 6_000;

const SETTINGS = [
  'shared_buffers=128MB',
  'max_connections=100',
  'max_wal_size=2GB',
  'checkpoint_timeout=15min',
  'jit=off',
  'log_checkpoints=off',
  // 128 MB instead of 8 GB: any login can fill the queue's disk space.
  'max_notify_queue_pages=16384',
  // Logins that do not finish take slots of all others until then.
  'authentication_timeout=10s',
  'timezone=UTC',
  'log_timezone=UTC',
  'log_line_prefix=%m [%p] ',
];
const DURABLE = ['fsync=on', 'synchronous_commit=on', 'full_page_writes=on'];
const FOR_TESTS = [
  'fsync=off',
  'synchronous_commit=off',
  'full_page_writes=off',
  'max_connections=400',
  'autovacuum=off',
];

/**
 * Starts PostgreSQL on a data folder, or adopts one that is already running there: it survives a `kill -9` of this program.
 * In `own` mode it is restarted whenever it dies.
 * @throws EmbeddedPostgresError with one line for the operator
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { dataDir, log, mode = 'own', durable = true, sharedDir = '/var/lib/doorplate' } = options;
  const settings = [...SETTINGS, ...(durable ? DURABLE : FOR_TESTS), ...(options.moreSettings ?? [])];
  ignorePostgresVariables();
  const location = findLocation(dataDir, sharedDir);
  const { id, pid, endpoint, binaries } = await exclusively(location.base, START_PATIENCE_MS, async () => {
    const id = enter(location.usersFile, mode, dataDir);
    try {
      const binaries = findBinaries(location.runAs, sharedDir);
      await ensureCluster(location, binaries, durable);
      const running = await run(location, binaries, settings);
      await ensureDatabase(databaseUrl(location, running.endpoint, 'postgres'));
      return { id, binaries, ...running };
    } catch (error) {
      leave(location.usersFile, id);
      throw error;
    }
  });
  log.info({ pid, folder: location.base }, 'embedded PostgreSQL is running');
  const ending = new AbortController();
  let stopped: Promise<void> | undefined;
  let current = pid;
  const restart = () =>
    exclusively(location.base, START_PATIENCE_MS, async () => {
      if (stopped !== undefined) return;
      current = await ensureRunning(location, binaries, [...settings, ...endpoint.settings]);
    });
  if (mode === 'own') void supervise(location, restart, log, ending.signal);
  return {
    url: databaseUrl(location, endpoint),
    get pid() {
      return current;
    },
    stop: () => {
      ending.abort();
      stopped ??= end(location, id, log);
      return stopped;
    },
  };
}

/** pg takes from these what a URL leaves out, and has no option against it. They are of another server. */
function ignorePostgresVariables(): void {
  for (const name of Object.keys(process.env)) if (/^PG[A-Z]/.test(name)) delete process.env[name];
}

/** Starts PostgreSQL. If its port is taken, it moves to another, because no caller has the URL yet. */
async function run(
  location: DatabaseLocation,
  binaries: Binaries,
  settings: readonly string[],
): Promise<{ pid: number; endpoint: Endpoint }> {
  const endpoint = await findEndpoint(location);
  const at = async ({ settings: more }: Endpoint) =>
    ensureRunning(location, binaries, [...settings, ...more]);
  try {
    return { pid: await at(endpoint), endpoint };
  } catch (error) {
    const taken = error instanceof StartFailure && /could not (bind|create any TCP)/.test(error.message);
    const other = taken ? await moveEndpoint(location, endpoint) : null;
    if (other === null) throw error;
    return { pid: await at(other), endpoint: other };
  }
}

async function end(
  location: DatabaseLocation,
  id: string,
  log: EmbeddedPostgresOptions['log'],
): Promise<void> {
  try {
    await exclusively(location.base, STOP_PATIENCE_MS, async () => {
      if (!leave(location.usersFile, id)) return;
      const ended = await shutDown(location, SHUTDOWN_MS);
      if (!ended) log.warn('embedded PostgreSQL did not stop in time; the next start adopts it');
    });
  } catch (error) {
    log.warn(`embedded PostgreSQL was left running: ${reason(error)}`);
  }
}
