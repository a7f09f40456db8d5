import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Sealer, sealerFrom } from './sealing.ts';

/** The key under which all other keys and secrets are sealed at rest. */
export interface MasterKey extends Sealer {
  /** Tells which key sealed something, without telling the key. */
  readonly id: string;
}

export const masterKeyFrom = (key: Buffer): MasterKey => ({
  id: createHash('sha256').update('doorplate master key id').update(key).digest('hex').slice(0, 16),
  ...sealerFrom(key),
});

/**
 * The configured key, or the one of the data folder, which is made on the first start (mode 0600).
 * `configured`: 32 bytes in base64.
 */
export const loadMasterKey = async (configured: string | undefined, dataDir: string): Promise<MasterKey> => {
  if (configured) return masterKeyFrom(Buffer.from(configured, 'base64'));
  const file = join(dataDir, 'master.key');
  await mkdir(dataDir, { recursive: true });
  try {
    await writeFile(file, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const key = Buffer.from((await readFile(file, 'utf8')).trim(), 'base64');
  if (key.length !== 32) throw new Error(`${file} does not hold a key of 32 bytes in base64`);
  return masterKeyFrom(key);
};
