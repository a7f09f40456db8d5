/** What the files of a run have in common. */
import { readFile, rename, stat, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';

/** What a path leads to, also by another name; without a file there, its own spelling. */
export const identityOf = async (path: string): Promise<string> => {
  const found = await stat(path, { bigint: true }).catch(() => null);
  return found === null ? resolve(path) : `${found.dev}:${found.ino}`;
};

/**
 * The text of a file that this command has written; null: there is none, or it is replaced by force.
 * @param header which such a file begins with
 * @throws Error for a file of something else
 */
export const ownText = async (
  path: string,
  header: string,
  force: boolean,
  isEmpty: (text: string) => boolean = (text) => text === '',
): Promise<string | null> => {
  const known = await stat(path).catch(() => null);
  // A device would be replaced, and a pipe waited for.
  if (known && !known.isFile())
    throw new Error(
      `${path} cannot be written: ${known.isDirectory() ? 'it is a folder' : 'it is not a regular file'}`,
    );
  const text = await readFile(path, 'utf8').then(withoutMark, (error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw new Error(`${path} cannot be written: ${error.message}`);
  });
  if (isEmpty(text)) return null;
  if (text.startsWith(header)) return text;
  if (force) return null;
  throw new Error(`${path} is not a file of this command: name another, or replace it with --force`);
};

/** Written beside and renamed, so that the file is whole at any moment. */
export const replaceFile = async (path: string, text: string): Promise<void> => {
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
};

/** Text without the byte order mark that some programs save it with. */
export const withoutMark = (text: string): string => (text.startsWith('\uFEFF') ? text.slice(1) : text);
