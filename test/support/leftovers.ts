import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '../../platform/embedded/embedded-postgres.ts';
import { isAlive, type ProcessIdentity } from '../../platform/embedded/processes.ts';
import { createLogger } from '../../platform/log.ts';

/** What the folders of the runs' own PostgreSQL begin with. */
export const TEMPORARY_PREFIX = 'doorplate-test-run-';

/** Ends and removes what killed runs have left behind: their PostgreSQL outlives a `kill -9` by design. */
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
    // Another run that is only now beginning has no list yet.
    return true;
  }
}

async function endPostgres(dataDir: string): Promise<void> {
  const log = createLogger({ level: 'silent' });
  try {
    const joined = await startEmbeddedPostgres({ dataDir, log, mode: 'join', durable: false });
    await joined.stop();
  } catch {
    // What cannot even start needs no ending.
  }
}
