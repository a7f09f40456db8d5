import { createHash } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { openDataFolder, openFolder, refuseOtherWriters } from '../data-folder.ts';
import { EmbeddedPostgresError } from './error.ts';
import { firstClosedFolder, type SystemUser } from './reach.ts';
import { findSystemUser } from './system-user.ts';

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
