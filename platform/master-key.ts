import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The key under which all other keys and secrets are sealed at rest. */
export interface MasterKey {
  /** Tells which key sealed something, without telling the key. */
  readonly id: string;
  seal(plain: Buffer): Buffer;
  /** @throws when the text was not sealed under this key, or was changed */
  open(sealed: Buffer): Buffer;
}

const NONCE = 12;
const TAG = 16;

/** AES-256-GCM under 32 bytes: nonce, tag, then the sealed text. */
export const masterKeyFrom = (key: Buffer): MasterKey => ({
  id: createHash('sha256').update('doorplate master key id').update(key).digest('hex').slice(0, 16),
  seal: (plain) => {
    const nonce = randomBytes(NONCE);
    const cipher = createCipheriv('aes-256-gcm', key, nonce);
    const sealed = Buffer.concat([cipher.update(plain), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
  },
  open: (sealed) => {
    const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE));
    decipher.setAuthTag(sealed.subarray(NONCE, NONCE + TAG));
    return Buffer.concat([decipher.update(sealed.subarray(NONCE + TAG)), decipher.final()]);
  },
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
