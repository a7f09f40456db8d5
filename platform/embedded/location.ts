import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { openDataFolder, openFolder, refuseOtherWriters } from '../config/data-folder.ts';
import { EmbeddedPostgresError, reason } from './processes.ts';

/** The user that PostgreSQL runs as when this process is root, as which PostgreSQL refuses to run. */
export interface SystemUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

const READ = 4;
const ENTER = 1;

/** Returns the outermost folder of the path, itself included, that the user may not enter; null if none. */
export function firstClosedFolder(path: string, user: SystemUser): string | null {
  const folders = [path];
  while (dirname(folders[0] as string) !== folders[0]) folders.unshift(dirname(folders[0] as string));
  return folders.find((folder) => !permits(folder, user, ENTER)) ?? null;
}

/** Returns whether the user can enter the folder and read and execute its contents. */
export function canUse(folder: string, user: SystemUser): boolean {
  return firstClosedFolder(folder, user) === null && everythingReadable(folder, user);
}

function everythingReadable(folder: string, user: SystemUser): boolean {
  return readdirSync(folder, { withFileTypes: true }).every((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return permits(path, user, READ | ENTER) && everythingReadable(path, user);
    return permits(path, user, READ);
  });
}

/** Checks mode bits only, because a real check would need a process of that user. */
function permits(path: string, { uid, gid }: SystemUser, wanted: number): boolean {
  const status = statSync(path, { throwIfNoEntry: false });
  if (status === undefined) return true;
  const { mode, uid: owner, gid: group } = status;
  const shift = owner === uid ? 6 : group === gid ? 3 : 0;
  return ((mode >> shift) & wanted) === wanted;
}

/** Runs a program and returns what it printed. @throws when it is missing or fails */
export type RunProgram = (program: string, args: readonly string[]) => string;

const OWN_USER = 'doorplate';

const WAYS_TO_CREATE: readonly (readonly [string, ...string[]])[] = [
  ['useradd', '--system', '--user-group', '--no-create-home', '--shell', '/usr/sbin/nologin', OWN_USER],
  ['adduser', '--system', '--group', '--no-create-home', OWN_USER],
];

/**
 * Finds the user to run PostgreSQL as: `postgres` if it exists, otherwise `doorplate`, created if needed.
 * @throws EmbeddedPostgresError if no user exists or can be created
 */
export function findSystemUser(run: RunProgram = runProgram): SystemUser {
  return lookUp('postgres', run) ?? lookUp(OWN_USER, run) ?? create(run);
}

function lookUp(name: string, run: RunProgram): SystemUser | null {
  try {
    const [uid, gid] = [Number(run('id', ['-u', name])), Number(run('id', ['-g', name]))];
    // PostgreSQL would also refuse a second name for root.
    return uid > 0 ? { name, uid, gid } : null;
  } catch {
    return null;
  }
}

function create(run: RunProgram): SystemUser {
  const failures: string[] = [];
  for (const [program, ...args] of WAYS_TO_CREATE) {
    try {
      run(program, args);
    } catch (error) {
      failures.push(reason(error).split('\n')[0] as string);
    }
    const user = lookUp(OWN_USER, run);
    if (user !== null) return user;
  }
  throw new EmbeddedPostgresError(
    `PostgreSQL does not run as root and no user "${OWN_USER}" could be created for it (${failures.join('; ')}): ` +
      'start as another user, or set DATABASE_URL',
  );
}

const runProgram: RunProgram = (program, args) =>
  execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

/** Paths of one embedded PostgreSQL, and the user that it runs as. */
export interface DatabaseLocation {
  readonly base: string;
  readonly cluster: string;
  readonly sockets: string;
  readonly logFile: string;
  readonly passwordFile: string;
  readonly portFile: string;
  readonly usersFile: string;
  /** null: this process's own user. */
  readonly runAs: SystemUser | null;
}

const POINTER = 'postgres.location';

/**
 * Decides where PostgreSQL's data is stored: in `postgres/` of the data folder; or, if this process is root and
 * PostgreSQL's user cannot enter a folder on that path, under `shared`, with a pointer file in the data folder.
 * @throws DataFolderError if this process cannot use the folder, or others can change it
 * @throws EmbeddedPostgresError if existing data became unreachable
 */
export function findLocation(dataDir: string, shared: string): DatabaseLocation {
  const isRoot = process.getuid?.() === 0;
  const wanted = openDataFolder(resolve(dataDir));
  const inside = join(wanted, 'postgres');
  const runAs = isRoot ? (ownerOf(join(inside, 'cluster')) ?? findSystemUser()) : null;
  const base =
    readPointer(wanted) ?? (runAs === null ? inside : reachableBase(wanted, inside, shared, runAs));
  openFolder(base, 0o755);
  const plain = ['port', 'in-use.json', 'postgres.log', 'run', 'cluster'];
  refuseOtherWriters(base, { plain, secret: ['password'], owner: runAs?.uid });
  return {
    base,
    cluster: join(base, 'cluster'),
    sockets: ownFolder(join(base, 'run'), runAs),
    logFile: join(base, 'postgres.log'),
    passwordFile: join(base, 'password'),
    portFile: join(base, 'port'),
    usersFile: join(base, 'in-use.json'),
    runAs,
  };
}

/** Creates a folder that only PostgreSQL's user and root may enter. */
export function ownFolder(folder: string, runAs: SystemUser | null): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (runAs !== null) chownSync(folder, runAs.uid, runAs.gid);
  return folder;
}

/** Returns the owner of existing data, which must stay the owner when root starts the server once. */
function ownerOf(cluster: string): SystemUser | null {
  const status = statSync(cluster, { throwIfNoEntry: false });
  return status === undefined || status.uid === 0
    ? null
    : { name: `user ${status.uid}`, uid: status.uid, gid: status.gid };
}

/** Returns the folder of a data folder's database; null if it has none. Makes no folder. */
export function folderOfDatabase(dataDir: string): string | null {
  const cluster = join(readPointer(dataDir) ?? join(dataDir, 'postgres'), 'cluster');
  return existsSync(cluster) ? cluster : null;
}

function reachableBase(wanted: string, inside: string, shared: string, user: SystemUser): string {
  const closed = firstClosedFolder(wanted, user);
  if (closed === null) return inside;
  if (existsSync(join(inside, 'cluster'))) {
    throw new EmbeddedPostgresError(
      `PostgreSQL runs as ${user.name}, who may not enter ${closed} any more and so not reach the data in ${inside}`,
    );
  }
  const base = join(openFolder(shared, 0o755), nameFor(wanted));
  const closedToo = firstClosedFolder(dirname(base), user);
  if (closedToo !== null) {
    throw new EmbeddedPostgresError(
      `PostgreSQL runs as ${user.name}, who may enter neither ${closed} nor ${closedToo}: move DATA_DIR`,
    );
  }
  writePointer(wanted, base);
  return base;
}

/** The name includes the folder's identity, so that a deleted and recreated data folder does not find the old data. */
function nameFor(wanted: string): string {
  const { ino, birthtimeMs } = statSync(wanted);
  const digest = createHash('sha256').update(`${wanted}\0${ino}\0${birthtimeMs}`).digest('hex');
  return `${basename(dirname(wanted))}-${digest.slice(0, 16)}`;
}

function readPointer(wanted: string): string | null {
  const pointer = join(wanted, POINTER);
  return existsSync(pointer) ? readFileSync(pointer, 'utf8').trim() : null;
}

function writePointer(wanted: string, base: string): void {
  const pointer = join(wanted, POINTER);
  writeFileSync(`${pointer}.${process.pid}`, `${base}\n`, { mode: 0o600 });
  renameSync(`${pointer}.${process.pid}`, pointer);
}
