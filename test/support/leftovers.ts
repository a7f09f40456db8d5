import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '../../platform/embedded/embedded-postgres.ts';
import { isAlive, type ProcessIdentity } from '../../platform/embedded/processes.ts';
import { createLogger } from '../../platform/log.ts';

/** The prefix of the folders of the runs' own PostgreSQL. */
export const TEMPORARY_PREFIX = 'doorplate-test-run-';

/** Ends and removes what killed runs have left: their PostgreSQL survives a `kill -9` by design. */
export async function removeLeftovers(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(TEMPORARY_PREFIX)) continue;
    const dataDir = join(tmpdir(), name);
    if (isInUse(dataDir)) continue;
    await endPostgres(dataDir);
    rmSync(dataDir, { recursive: true, force: true });
  }
}

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
