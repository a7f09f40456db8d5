import { createCipheriv, createDecipheriv, createHash, createSecretKey, randomBytes } from 'node:crypto';
import {
  chownSync,
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { Config } from '../config/config.ts';

const NONCE = 12;
const TAG = 16;

/** Seals under one key. `about` binds text to a context: it opens only with the same `about`. */
export interface Sealer {
  seal(plain: Buffer, about?: string): Buffer;
  /** Opens sealed text. @throws if the key, the context or the data differ */
  open(sealed: Buffer, about?: string): Buffer;
}

/** Creates a sealer with AES-256-GCM under 32 bytes. Format: nonce, tag, ciphertext. */
export function sealerFrom(key: Buffer): Sealer {
  // A key object is ten times faster than raw bytes.
  const secret = createSecretKey(key);
  return {
    seal: (plain, about = '') => {
      const nonce = randomBytes(NONCE);
      const cipher = createCipheriv('aes-256-gcm', secret, nonce).setAAD(Buffer.from(about));
      const sealed = Buffer.concat([cipher.update(plain), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
    },
    open: (sealed, about = '') => {
      const decipher = createDecipheriv('aes-256-gcm', secret, sealed.subarray(0, NONCE), {
        authTagLength: TAG,
      });
      decipher.setAAD(Buffer.from(about)).setAuthTag(sealed.subarray(NONCE, NONCE + TAG));
      return Buffer.concat([decipher.update(sealed.subarray(NONCE + TAG)), decipher.final()]);
    },
  };
}

/**
 * Lines of the data folder's master key: the key in base64, and during a change the previous key. Every change is one
 * rename, so readers and crashes see either state.
 */
export type KeyLines = readonly [current: Buffer, ...previous: Buffer[]];

const KEY_BYTES = 32;

export const keyFileIn = (dataDir: string): string => join(dataDir, 'master.key');

/** Creates the file with a new key if missing. @returns its name */
export function ensureKeyFile(dataDir: string): string {
  const file = keyFileIn(dataDir);
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const made = writeBeside(file, [randomBytes(KEY_BYTES)]);
  try {
    // Of concurrent starts one wins, and no process sees a partial file.
    linkSync(made, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(made);
  }
  flushFolder(file);
  return file;
}

/** Reads the key file. @throws if it is missing or invalid */
function readKeyFile(file: string): KeyLines {
  const [current, ...previous] = readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => Buffer.from(line, 'base64'));
  if (current && [current, ...previous].every(({ length }) => length === KEY_BYTES)) {
    return [current, ...previous];
  }
  throw new Error(`${file} does not hold keys of 32 bytes in base64`);
}

/** Adds a new current key, unless an earlier change is unfinished. */
export function beginKeyChange(file: string): void {
  const [current, ...previous] = readKeyFile(file);
  if (previous.length === 0) replace(file, [randomBytes(KEY_BYTES), current]);
}

/** Removes the previous key, which must not seal anything any more. */
export function endKeyChange(file: string): void {
  const [current, ...previous] = readKeyFile(file);
  if (previous.length > 0) replace(file, [current]);
}

function replace(file: string, lines: KeyLines): void {
  const made = writeBeside(file, lines);
  // The operator may be root while the service runs as another user.
  const { uid, gid } = statSync(file);
  if (statSync(made).uid !== uid) chownSync(made, uid, gid);
  renameSync(made, file);
  flushFolder(file);
}

function writeBeside(file: string, lines: KeyLines): string {
  const made = `${file}.${process.pid}-${randomBytes(4).toString('hex')}`;
  const text = lines.map((line) => `${line.toString('base64')}\n`).join('');
  writeFileSync(made, text, { mode: 0o600, flag: 'wx', flush: true });
  return made;
}

/** Flushes the folder, so that a new name survives a machine crash. */
function flushFolder(file: string): void {
  const folder = openSync(dirname(file), 'r');
  fsyncSync(folder);
  closeSync(folder);
}

/** Sealed data, and the id of its key, which does not reveal the key. */
export interface Sealed {
  readonly master_key_id: string;
  readonly sealed: Buffer;
}

/** Seals all other keys and secrets at rest. During a change of the key, the previous one still opens. */
export interface MasterKey {
  /** Seals text. `about` binds it to a context: it opens only with the same `about`. */
  seal(plain: Buffer, about?: string): Sealed;
  /** Opens sealed text. @throws if the key is unknown, or the context or data differ */
  open(sealed: Sealed, about?: string): Buffer;
  currentId(): string;
}

interface IdentifiedKey extends Sealer {
  readonly id: string;
}

/** The sealing key, then further opening keys. */
type Keys = readonly [IdentifiedKey, ...IdentifiedKey[]];

const identified = (key: Buffer): IdentifiedKey => ({
  id: createHash('sha256').update('doorplate master key id').update(key).digest('hex').slice(0, 16),
  ...sealerFrom(key),
});

/** Creates a master key. `keys` reads the current keys; `known` returns those of the last read. */
function masterKeyBy(keys: () => Keys, known: () => Keys): MasterKey {
  const byId = (id: string) => (key: IdentifiedKey) => key.id === id;
  return {
    seal: (plain, about) => {
      const [{ id, seal }] = keys();
      return { master_key_id: id, sealed: seal(plain, about) };
    },
    open: ({ master_key_id: id, sealed }, about) => {
      const key = known().find(byId(id)) ?? keys().find(byId(id));
      if (key) return key.open(sealed, about);
      throw new Error('MASTER_KEY is not the one that the keys in this database are sealed under');
    },
    currentId: () => keys()[0].id,
  };
}

/** Creates a master key from bytes. `previous`: keys that only open. */
export function masterKeyFrom(key: Buffer, ...previous: readonly Buffer[]): MasterKey {
  const keys: Keys = [identified(key), ...previous.map(identified)];
  return masterKeyBy(
    () => keys,
    () => keys,
  );
}

/**
 * Loads the configured keys, or those of the data folder, created on the first start. The folder is read at every seal,
 * which is rare, so that running processes follow a change of the key.
 */
export function loadMasterKey(
  { MASTER_KEY: key, MASTER_KEY_PREVIOUS: previous }: Pick<Config, 'MASTER_KEY' | 'MASTER_KEY_PREVIOUS'>,
  dataDir: string,
): MasterKey {
  if (key) return masterKeyFrom(fromBase64(key), ...(previous ? [fromBase64(previous)] : []));
  const file = ensureKeyFile(dataDir);
  let known: Keys;
  const read = (): Keys => {
    const [current, ...others] = readKeyFile(file);
    known = [identified(current), ...others.map(identified)];
    return known;
  };
  known = read();
  return masterKeyBy(read, () => known);
}

const fromBase64 = (text: string): Buffer => Buffer.from(text, 'base64');

/** A sealed secret as stored in events and JSON columns. */
export interface SealedText {
  readonly master_key_id: string;
  /** Base64. */
  readonly sealed: string;
}

export function sealText(master: MasterKey, plain: Buffer, about: string): SealedText {
  const { master_key_id, sealed } = master.seal(plain, about);
  return { master_key_id, sealed: sealed.toString('base64') };
}

/** Opens a sealed text. @throws what `open` throws */
export const openText = (master: MasterKey, { master_key_id, sealed }: SealedText, about: string): Buffer =>
  master.open({ master_key_id, sealed: fromBase64(sealed) }, about);
