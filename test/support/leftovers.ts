import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '../../platform/embedded/embedded-postgres.ts';
import { isAlive, type ProcessIdentity } from '../../platform/embedded/processes.ts';
import { createLogger } from '../../platform/telemetry/log.ts';
import { TEMPORARY_FOLDERS } from './temporary-folder.ts';

/** The prefix of the folders of the runs' own PostgreSQL. */
export const TEMPORARY_PREFIX = 'doorplate-test-run-';

/** Ends and removes what killed runs have left: their PostgreSQL survives a `kill -9` by design. */
export async function removeLeftovers(): Promise<void> {
  for (const dataDir of TEMPORARY_FOLDERS.filter(existsSync).flatMap(runsIn)) {
    if (isInUse(dataDir)) continue;
    await endPostgres(dataDir);
    rmSync(dataDir, { recursive: true, force: true });
  }
}

const runsIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.startsWith(TEMPORARY_PREFIX))
    .map((name) => join(folder, name));

function isInUse(dataDir: string): boolean {
  try {
    const users = JSON.parse(
      readFileSync(join(dataDir, 'postgres', 'in-use.json'), 'utf8'),
    ) as ProcessIdentity[];
    return users.some(isAlive);
  } catch {
    // Another run that is just starting has no list yet.
    return true;
  }
}

async function endPostgres(dataDir: string): Promise<void> {
  const log = createLogger({ level: 'silent' });
  try {
    const joined = await startEmbeddedPostgres({ dataDir, log, mode: 'join', durable: false });
    await joined.stop();
  } catch {
    // A PostgreSQL that cannot start need not be stopped.
  }
}
