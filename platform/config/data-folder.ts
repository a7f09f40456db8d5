import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs';
import { join } from 'node:path';

/** The data folder cannot be used, or other users can change it. The message is one line for the operator. */
export class DataFolderError extends Error {}

/** The file that marks the data folder of `doorplate demo`. */
export const DEMO_MARK = 'doorplate-demo.json';

/** Returns whether the data folder is a demo's: its pages say so, and nothing is sent from it to other machines. */
export const isDemoFolder = (dataDir: string): boolean => existsSync(join(dataDir, DEMO_MARK));

/** Contents of a folder that other users must not be able to change. */
export interface Contents {
  /** Names of files and folders; missing ones are ignored. */
  readonly plain: readonly string[];
  /** Names of files that other users must not read either. */
  readonly secret?: readonly string[];
  /** A further permitted owner, besides root, this process's user and the folder's owner. */
  readonly owner?: number | undefined;
}

const OTHERS_WRITE = 0o022;
const OTHERS_READ_OR_WRITE = 0o077;

/**
 * Creates the data folder (`DATA_DIR`) if missing, and checks that only its owner and root can change it.
 * @returns its real path
 * @throws DataFolderError naming the folder or file that others may write, or the secret that they may read
 */
export function openDataFolder(dataDir: string): string {
  // When started as root, PostgreSQL's own user must be able to enter it.
  const folder = openFolder(dataDir, process.getuid?.() === 0 ? 0o755 : 0o700);
  refuseOtherWriters(folder, { plain: ['postgres.location'], secret: ['master.key', 'demo.env'] });
  return folder;
}

/** Does the same for another folder. `mode`: permissions of a new folder, regardless of the umask. */
export function openFolder(folder: string, mode: number): string {
  const real = makeFolder(folder, mode);
  const status = statSync(real);
  // Root may run the service in another user's folder, and that user then controls it.
  if (process.getuid?.() !== 0) refuseOwner(real, status, []);
  refuseMode(real, status, OTHERS_WRITE);
  return real;
}

/** Checks that only a folder's owner and root can change its contents. @throws DataFolderError */
export function refuseOtherWriters(folder: string, { plain, secret = [], owner }: Contents): void {
  const { uid } = statSync(folder);
  const check = (name: string, forbidden: number): void => {
    const path = join(folder, name);
    const status = statSync(path, { throwIfNoEntry: false });
    if (status === undefined) return;
    refuseOwner(path, status, [uid, owner]);
    refuseMode(path, status, forbidden);
  };
  for (const name of plain) check(name, OTHERS_WRITE);
  for (const name of secret) check(name, OTHERS_READ_OR_WRITE);
}

function makeFolder(folder: string, mode: number): string {
  try {
    // Under a restrictive umask, mkdir alone would lock PostgreSQL's user out.
    if (mkdirSync(folder, { recursive: true, mode }) !== undefined) chmodSync(folder, mode);
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    return realpathSync(folder);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const problem =
      code === 'EACCES' || code === 'EPERM'
        ? `user ${process.getuid?.()} may not read and write it`
        : message;
    throw new DataFolderError(`the data folder ${folder} cannot be used: ${problem}`);
  }
}

function refuseOwner(path: string, { uid }: Stats, owners: readonly (number | undefined)[]): void {
  if ([0, process.getuid?.(), ...owners].includes(uid)) return;
  throw new DataFolderError(
    `${path} belongs to user ${uid}, who can change it. Check what it holds, then give it to the service's user`,
  );
}

function refuseMode(path: string, { mode }: Stats, forbidden: number): void {
  if ((mode & forbidden) === 0) return;
  const [others, fix] =
    forbidden === OTHERS_WRITE ? ['write it', 'go-w'] : ['read or write this secret', 'go='];
  throw new DataFolderError(
    `others than its owner may ${others}: ${path} (mode ${(mode & 0o7777).toString(8)}). ` +
      `Check what it holds, then: chmod ${fix} ${path}`,
  );
}
