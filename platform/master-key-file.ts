import { randomBytes } from 'node:crypto';
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

/**
 * The data folder's own master key: a line of base64, and while it is being changed a second line, the key before. Every
 * change is one rename, so that whoever reads it, and whenever who changes it dies, finds the one state or the other.
 */
export type KeyLines = readonly [current: Buffer, ...previous: Buffer[]];

const KEY_BYTES = 32;

export const keyFileIn = (dataDir: string): string => join(dataDir, 'master.key');

/** Makes the file with a new key where there is none. @returns its name */
export const ensureKeyFile = (dataDir: string): string => {
  const file = keyFileIn(dataDir);
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const made = writeBeside(file, [randomBytes(KEY_BYTES)]);
  try {
    // Of several that start at once one is first; nobody sees half a file.
    linkSync(made, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(made);
  }
  flushFolder(file);
  return file;
};

/** @throws when the file is not there, or holds something else */
export const readKeyFile = (file: string): KeyLines => {
  const [current, ...previous] = readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => Buffer.from(line, 'base64'));
  if (current && [current, ...previous].every(({ length }) => length === KEY_BYTES)) {
    return [current, ...previous];
  }
  throw new Error(`${file} does not hold keys of 32 bytes in base64`);
};

/** Puts a new key in the first place, unless a change that was begun has not ended. */
export const beginKeyChange = (file: string): void => {
  const [current, ...previous] = readKeyFile(file);
  if (previous.length === 0) replace(file, [randomBytes(KEY_BYTES), current]);
};

/** Leaves the key in use alone: nothing may be sealed under the one before any more. */
export const endKeyChange = (file: string): void => {
  const [current, ...previous] = readKeyFile(file);
  if (previous.length > 0) replace(file, [current]);
};

const replace = (file: string, lines: KeyLines): void => {
  const made = writeBeside(file, lines);
  // The operator may be root; the service need not be.
  const { uid, gid } = statSync(file);
  if (statSync(made).uid !== uid) chownSync(made, uid, gid);
  renameSync(made, file);
  flushFolder(file);
};

const writeBeside = (file: string, lines: KeyLines): string => {
  const made = `${file}.${process.pid}-${randomBytes(4).toString('hex')}`;
  const text = lines.map((line) => `${line.toString('base64')}\n`).join('');
  writeFileSync(made, text, { mode: 0o600, flag: 'wx', flush: true });
  return made;
};

/** So that a new name outlives a crash of the machine. */
const flushFolder = (file: string): void => {
  const folder = openSync(dirname(file), 'r');
  fsyncSync(folder);
  closeSync(folder);
};
