import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  constants,
  fchownSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type Binaries, identityOf, PROGRAM_ENVIRONMENT } from './cluster.ts';
import type { DatabaseLocation } from './location.ts';
import {
  EmbeddedPostgresError,
  exists,
  identify,
  isAlive,
  mayServe,
  reason,
  servesCluster,
  until,
} from './processes.ts';

/** Address on which PostgreSQL listens. */
export interface Endpoint {
  /** Folder of a Unix socket, or an address. */
  readonly host: string;
  readonly port: number;
  readonly settings: readonly string[];
}

const LOOPBACK = '127.0.0.1';
/** PostgreSQL requires a port for a Unix socket; it cannot collide, because the folder is private. */
const SOCKET_NUMBER = 5432;
/** The kernel's limit on a Unix socket's path, without the final NUL. */
const SOCKET_PATH_BYTES = 107;

/**
 * Chooses a Unix socket, which is faster than TCP and private. If its path would be too long, it chooses a free loopback
 * port and stores it for later starts.
 */
export async function findEndpoint(location: DatabaseLocation): Promise<Endpoint> {
  const path = join(location.sockets, `.s.PGSQL.${SOCKET_NUMBER}`);
  if (Buffer.byteLength(path) <= SOCKET_PATH_BYTES) {
    const settings = [
      'listen_addresses=',
      `unix_socket_directories=${quoted(location.sockets)}`,
      `port=${SOCKET_NUMBER}`,
    ];
    return { host: location.sockets, port: SOCKET_NUMBER, settings };
  }
  return onLoopback(notedPort(location) ?? (await notePort(location)));
}

/** Chooses another port after a different program has taken the stored one; null for a Unix socket. */
export async function moveEndpoint(location: DatabaseLocation, { host }: Endpoint): Promise<Endpoint | null> {
  return host === LOOPBACK ? onLoopback(await notePort(location)) : null;
}

const onLoopback = (port: number): Endpoint => ({
  host: LOOPBACK,
  port,
  settings: [`listen_addresses=${LOOPBACK}`, 'unix_socket_directories=', `port=${port}`],
});

/** The setting is a list, so a comma or space in the path must be quoted. */
const quoted = (folder: string): string => `"${folder.replaceAll('"', '""')}"`;

function notedPort({ portFile }: DatabaseLocation): number | null {
  try {
    return Number(readFileSync(portFile, 'utf8')) || null;
  } catch {
    return null;
  }
}

async function notePort({ portFile }: DatabaseLocation): Promise<number> {
  const port = await freePort();
  writeFileSync(portFile, `${port}\n`, { mode: 0o600 });
  return port;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, LOOPBACK);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** PostgreSQL did not start; the message quotes its log. */
export class StartFailure extends EmbeddedPostgresError {}

/** Lines 1 and 8 of PostgreSQL's pid file. */
interface PidFile {
  readonly pid: number;
  readonly status: string;
}

/** Long, because replaying the log after a crash may take minutes. */
const RECOVERY_MS = 300_000;
/** Time that child processes of a killed PostgreSQL may take to exit. */
const REMAINS_MS = 20_000;

/** Returns the pid of the PostgreSQL that serves this cluster, even if another process started it; null if none. */
export function findRunning(location: DatabaseLocation): number | null {
  const noted = readPidFile(location);
  return noted !== null && servesCluster(noted.pid, location.cluster) ? noted.pid : null;
}

/**
 * Adopts a PostgreSQL that is running on this data, or starts one in a session of its own, which the terminal's Ctrl-C does
 * not reach. It accepts connections when this returns.
 * @returns its process id
 * @throws StartFailure
 */
export async function ensureRunning(
  location: DatabaseLocation,
  binaries: Binaries,
  settings: readonly string[],
): Promise<number> {
  const patience = performance.now() + REMAINS_MS;
  for (;;) {
    const pid = findRunning(location);
    if (pid !== null && (await becomesReady(location, pid))) return pid;
    const logEnd = rotateLog(location);
    const started = launch(location, binaries, settings);
    if (await becomesReady(location, started)) return started;
    const message = complaint(location, logEnd);
    const remains = message.includes('shared memory block') && message.includes('is still in use');
    if (!remains || performance.now() > patience) {
      throw new StartFailure(`PostgreSQL did not start: ${message || `see ${location.logFile}`}`);
    }
    await pause(200);
  }
}

/** Stops PostgreSQL, disconnecting its sessions. @returns whether it exited in time */
export async function shutDown(location: DatabaseLocation, milliseconds: number): Promise<boolean> {
  const pid = findRunning(location);
  const server = pid === null ? null : identify(pid);
  if (pid === null || server === null) return true;
  // Checked by identity, because a process loses its command line shortly before it exits.
  const gone = () => !isAlive(server);
  kill(pid, 'SIGINT');
  if (await until(gone, milliseconds)) return true;
  // Immediate shutdown loses nothing committed; the next start replays the log.
  kill(pid, 'SIGQUIT');
  return until(gone, 2_000);
}

function launch(location: DatabaseLocation, binaries: Binaries, settings: readonly string[]): number {
  removeForeignPidFiles(location);
  const log = openLog(location);
  try {
    const child = spawn(
      binaries.postgres,
      ['-D', location.cluster, ...settings.flatMap((set) => ['-c', set])],
      {
        ...identityOf(location),
        cwd: location.cluster,
        env: PROGRAM_ENVIRONMENT,
        detached: true,
        stdio: ['ignore', log, log],
      },
    );
    child.on('error', () => {});
    child.unref();
    if (child.pid !== undefined) return child.pid;
    throw new StartFailure(`PostgreSQL's program ${binaries.postgres} cannot be run`);
  } finally {
    closeSync(log);
  }
}

/** Waits until PostgreSQL accepts connections; false as soon as the process is gone. */
async function becomesReady(location: DatabaseLocation, pid: number): Promise<boolean> {
  const ready = () => {
    const noted = readPidFile(location);
    return noted?.pid === pid && noted.status === 'ready';
  };
  const decided = await until(() => ready() || identify(pid) === null, RECOVERY_MS);
  if (!decided) throw new StartFailure(`PostgreSQL (process ${pid}) is not ready: see ${location.logFile}`);
  return identify(pid) !== null && ready();
}

/**
 * Removes pid files that name a process which does not serve this folder: another program, a zombie (in a container without an
 * init), or the PostgreSQL of another folder. PostgreSQL would mistake it for a running server and refuse to start.
 */
function removeForeignPidFiles(location: DatabaseLocation): void {
  for (const note of [pidFile(location), join(location.sockets, `.s.PGSQL.${SOCKET_NUMBER}.lock`)]) {
    const pid = Number(readLines(note)[0] ?? 0);
    if (pid > 0 && exists(pid) && !mayServe(pid, location.cluster)) rmSync(note, { force: true });
  }
}

function readPidFile(location: DatabaseLocation): PidFile | null {
  const lines = readLines(pidFile(location));
  return lines.length === 0 ? null : { pid: Number(lines[0]), status: lines[7]?.trim() ?? '' };
}

const pidFile = ({ cluster }: DatabaseLocation): string => join(cluster, 'postmaster.pid');

function readLines(file: string): readonly string[] {
  try {
    return readFileSync(file, 'utf8').split('\n');
  } catch {
    return [];
  }
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // The process exited in between, which is the goal.
  }
}

const LOG_LIMIT_BYTES = 10_000_000;

/** Opens the log for PostgreSQL to append to. @throws EmbeddedPostgresError */
function openLog({ base, logFile }: DatabaseLocation): number {
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants;
  try {
    const log = openSync(logFile, O_APPEND | O_CREAT | O_NOFOLLOW | O_WRONLY, 0o600);
    // After a start as root in another user's folder, that user must be able to append to the log.
    const { uid, gid } = statSync(base);
    fchownSync(log, uid, gid);
    return log;
  } catch (error) {
    throw new EmbeddedPostgresError(`PostgreSQL's log cannot be written: ${reason(error)}`);
  }
}

/** Renames a long log before a start. @returns the offset at which the next start's lines begin */
function rotateLog({ logFile }: DatabaseLocation): number {
  const size = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0;
  if (size < LOG_LIMIT_BYTES) return size;
  renameSync(logFile, `${logFile}.1`);
  return 0;
}

/** Returns the last lines of the log in one line, without those of every start. */
function complaint({ logFile }: DatabaseLocation, from: number): string {
  const lines = readFileSync(logFile).subarray(from).toString('utf8').trim().split('\n');
  const words = lines.map((line) => line.replace(/^.*?\b(?:FATAL|PANIC|HINT|WARNING|LOG): +/, ''));
  const meaningful = words.filter((line) => !/^(starting|listening|shutting|database system)/.test(line));
  return meaningful.slice(-4).join(' / ');
}
