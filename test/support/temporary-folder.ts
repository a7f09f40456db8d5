import { mkdtempSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeDataFolder } from '../../cli/installation/data-folder.ts';
import { reap } from './reaped.ts';

const MEMORY = '/dev/shm';
/** More than all databases of a run use at once. */
const ROOM_BYTES = 4 * 2 ** 30;

/** The folders in which `makeTemporaryFolder` may have made some. */
export const TEMPORARY_FOLDERS: readonly string[] = [MEMORY, tmpdir()];

/**
 * Makes a folder for the data of PostgreSQL: for tests in memory where there is room, because a copy of a database is 600
 * files, which take 0.3 s on a disk and 15 ms in memory. Benches and storms by hand use the disk, whose speed counts.
 */
export const makeTemporaryFolder = (prefix: string): string => mkdtempSync(join(parent(), prefix));

/** Makes a `DATA_DIR`, which is removed with the test's own process, however that ends. */
export const makeTestFolder = (): string => {
  const folder = makeDataFolder(parent());
  reap({ folder });
  return folder;
};

const parent = (): string => (process.env.VITEST !== undefined && hasRoomInMemory() ? MEMORY : tmpdir());

const hasRoomInMemory = (): boolean => {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize > ROOM_BYTES;
  } catch {
    return false;
  }
};
