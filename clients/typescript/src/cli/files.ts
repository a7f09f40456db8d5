/** What the files of a run have in common. */
import { rename, stat, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';

/** What a path leads to, also by another name; without a file there, its own spelling. */
export const identityOf = async (path: string): Promise<string> => {
  const found = await stat(path, { bigint: true }).catch(() => null);
  return found === null ? resolve(path) : `${found.dev}:${found.ino}`;
};

/** Written beside and renamed, so that the file is whole at any moment. */
export const replaceFile = async (path: string, text: string): Promise<void> => {
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
};
