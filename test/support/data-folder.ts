import { chmodSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { servesCluster, until } from '../../platform/embedded/processes.ts';
import { makeTemporaryFolder } from './temporary-folder.ts';

/** A new, empty `DATA_DIR` that PostgreSQL's user can enter, also when root runs the tests. */
export const makeDataFolder = (): string => {
  const folder = makeTemporaryFolder('doorplate-e2e-');
  chmodSync(folder, 0o755);
  return folder;
};

/** Where the embedded PostgreSQL of a data folder keeps its files. */
const baseOf = (dataDir: string): string => {
  const pointer = join(dataDir, 'postgres.location');
  return existsSync(pointer) ? readFileSync(pointer, 'utf8').trim() : join(dataDir, 'postgres');
};

/** The embedded PostgreSQL that runs on a data folder, whichever process started it; null: none runs. */
export const postmasterOf = (dataDir: string): number | null => {
  const cluster = join(baseOf(dataDir), 'cluster');
  try {
    const pid = Number(readFileSync(join(cluster, 'postmaster.pid'), 'utf8').split('\n')[0]);
    return servesCluster(pid, cluster) ? pid : null;
  } catch {
    return null;
  }
};

/** Kills what runs on a data folder and removes the folder. */
export const removeDataFolder = async (dataDir: string): Promise<void> => {
  const pid = postmasterOf(dataDir);
  if (pid !== null) {
    process.kill(pid, 'SIGQUIT');
    const gone = await until(() => postmasterOf(dataDir) === null, 5_000);
    if (!gone) process.kill(pid, 'SIGKILL');
  }
  rmSync(baseOf(dataDir), { recursive: true, force: true });
  rmSync(dataDir, { recursive: true, force: true });
};
