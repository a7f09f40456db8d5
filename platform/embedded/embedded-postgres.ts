import type { Logger } from '../log.ts';
import { type Binaries, findBinaries } from './binaries.ts';
import { databaseUrl, ensureCluster, ensureDatabase } from './cluster.ts';
import { type Endpoint, findEndpoint, moveEndpoint } from './endpoint.ts';
import { reason } from './error.ts';
import { type DatabaseLocation, findLocation } from './location.ts';
import { exclusively } from './mutex.ts';
import { ensureRunning, findRunning, StartFailure, shutDown } from './postmaster.ts';
import { supervise } from './supervise.ts';
import { enter, leave, type Mode } from './users.ts';

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
const FOR_TESTS = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'max_connections=400'];

/**
 * Starts PostgreSQL on a data folder, or adopts one that is already running there: it survives a `kill -9` of this program.
 * In `own` mode it is restarted whenever it dies.
 * @throws EmbeddedPostgresError with one line for the operator
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { dataDir, log, mode = 'own', durable = true, sharedDir = '/var/lib/doorplate' } = options;
  const { moreSettings = [] } = options;
  const location = findLocation(dataDir, sharedDir);
  const use = await exclusively(location.base, START_PATIENCE_MS, async () => {
    const id = enter(location.usersFile, mode, dataDir);
    try {
      return {
        id,
        ...(await begin(location, durable, moreSettings, findBinaries(location.runAs, sharedDir))),
      };
    } catch (error) {
      leave(location.usersFile, id);
      throw error;
    }
  });
  log.info({ pid: use.pid, folder: location.base }, 'embedded PostgreSQL is running');
  return mode === 'own' ? supervised(location, use, log) : joined(location, use, log);
}

interface Use {
  /** Id of this process's entry in the list of users. */
  readonly id: string;
  readonly url: string;
  readonly pid: number;
  restart(): Promise<number>;
}

async function begin(
  location: DatabaseLocation,
  durable: boolean,
  moreSettings: readonly string[],
  binaries: Binaries,
): Promise<Omit<Use, 'id'>> {
  await ensureCluster(location, binaries, durable);
  const settings = [...SETTINGS, ...(durable ? DURABLE : FOR_TESTS), ...moreSettings];
  const { pid, endpoint } = await run(location, binaries, settings);
  const { host, port } = endpoint;
  await ensureDatabase(databaseUrl(location, host, port, 'postgres'));
  return {
    url: databaseUrl(location, host, port),
    pid,
    restart: () => ensureRunning(location, binaries, [...settings, ...endpoint.settings]),
  };
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

function supervised(
  location: DatabaseLocation,
  use: Use,
  log: EmbeddedPostgresOptions['log'],
): EmbeddedPostgres {
  let { pid } = use;
  let stopped: Promise<void> | undefined;
  const endSupervision = supervise(
    {
      isRunning: () => findRunning(location) !== null,
      restart: () =>
        exclusively(location.base, START_PATIENCE_MS, async () => {
          if (stopped === undefined) pid = await use.restart();
        }),
    },
    log,
  );
  return {
    url: use.url,
    get pid() {
      return pid;
    },
    stop: () => {
      endSupervision();
      stopped ??= end(location, use, log);
      return stopped;
    },
  };
}

function joined(location: DatabaseLocation, use: Use, log: EmbeddedPostgresOptions['log']): EmbeddedPostgres {
  let stopped: Promise<void> | undefined;
  return {
    url: use.url,
    pid: use.pid,
    stop: () => {
      stopped ??= end(location, use, log);
      return stopped;
    },
  };
}

async function end(
  location: DatabaseLocation,
  { id }: Use,
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
