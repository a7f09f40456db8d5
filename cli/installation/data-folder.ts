import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { folderOfDatabase } from '../../platform/embedded/location.ts';
import { servesCluster, until } from '../../platform/embedded/processes.ts';

/** Makes a new, empty `DATA_DIR` that PostgreSQL's user can enter, also when root starts the service. */
export const makeDataFolder = (parent = tmpdir()): string => {
  const folder = mkdtempSync(join(parent, 'doorplate-'));
  chmodSync(folder, 0o755);
  return folder;
};

/** Returns the embedded PostgreSQL that runs on a data folder, whichever process started it; null: none runs. */
export const postmasterOf = (dataDir: string): number | null => {
  const cluster = folderOfDatabase(dataDir);
  if (cluster === null) return null;
  try {
    const pid = Number(readFileSync(join(cluster, 'postmaster.pid'), 'utf8').split('\n')[0]);
    return servesCluster(pid, cluster) ? pid : null;
  } catch {
    return null;
  }
};

/** Ends the embedded PostgreSQL that still runs on a data folder, and removes the folder. */
export const removeDataFolder = async (dataDir: string): Promise<void> => {
  const pid = postmasterOf(dataDir);
  if (pid !== null) {
    process.kill(pid, 'SIGQUIT');
    const gone = await until(() => postmasterOf(dataDir) === null, 5_000);
    if (!gone) process.kill(pid, 'SIGKILL');
  }
  const cluster = folderOfDatabase(dataDir);
  if (cluster !== null) rmSync(dirname(cluster), { recursive: true, force: true });
  rmSync(dataDir, { recursive: true, force: true });
};
