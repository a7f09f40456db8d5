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
 * Lines of the data folder's master key: the key in base64, and during a change the previous key. Every change is one
 * rename, so readers and crashes see either state.
 */
export type KeyLines = readonly [current: Buffer, ...previous: Buffer[]];

const KEY_BYTES = 32;

export const keyFileIn = (dataDir: string): string => join(dataDir, 'master.key');

/** Creates the file with a new key if missing. @returns its name */
export const ensureKeyFile = (dataDir: string): string => {
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
};

/** Reads the key file. @throws if it is missing or invalid */
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

/** Adds a new current key, unless an earlier change is unfinished. */
export const beginKeyChange = (file: string): void => {
  const [current, ...previous] = readKeyFile(file);
  if (previous.length === 0) replace(file, [randomBytes(KEY_BYTES), current]);
};

/** Removes the previous key, which must not seal anything any more. */
export const endKeyChange = (file: string): void => {
  const [current, ...previous] = readKeyFile(file);
  if (previous.length > 0) replace(file, [current]);
};

const replace = (file: string, lines: KeyLines): void => {
  const made = writeBeside(file, lines);
  // The operator may be root while the service runs as another user.
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

/** Flushes the folder, so that a new name survives a machine crash. */
const flushFolder = (file: string): void => {
  const folder = openSync(dirname(file), 'r');
  fsyncSync(folder);
  closeSync(folder);
};
