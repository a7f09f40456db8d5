import type { Stats } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import type { Logger } from 'pino';

export interface ReloadingFile<T> {
  /** Returns the last good content. */
  current(): T;
  close(): void;
}

export interface ReloadingFileOptions<T> {
  readonly file: string;
  readonly parse: (content: Buffer) => T | Promise<T>;
  readonly log: Logger;
  /** Names the provider in log lines and errors. */
  readonly provider: string;
  /** Begins the error at startup: the variable that names the file. */
  readonly variable: string;
  readonly onReload?: ((outcome: 'reloaded' | 'failed') => void) | undefined;
}

const CHECK_MS = 500;

/**
 * Keeps a file's content in memory and reads it again within seconds when it changes. Lookups use the old content
 * until the new one is complete; if that cannot be read, the old one stays in use. A file that changes between two looks, half a second
 * apart, is being written: what it holds then, such as nothing, would be taken for all.
 * @throws Error that names the variable, the file and the fault, at startup only
 */
export const openReloadingFile = async <T>({
  file,
  parse,
  log,
  provider,
  variable,
  onReload = () => undefined,
}: ReloadingFileOptions<T>): Promise<ReloadingFile<T>> => {
  const look = (): Promise<Stats | null> => stat(file).catch(() => null);
  const read = async (): Promise<T> => parse(await readFile(file));
  // Before the read, so that a change during it is noticed.
  let seen = await look();
  let found = seen;
  let content: T;
  try {
    content = await read();
  } catch (error) {
    throw new Error(`${variable} ${file}: ${(error as Error).message}`);
  }

  const reload = async (): Promise<void> => {
    const before = found;
    found = await look();
    if (isSame(found, seen) || !isSame(found, before)) return;
    try {
      const next = await read();
      if (!isSame(await look(), found)) return;
      content = next;
      seen = found;
      onReload('reloaded');
      log.info({ provider, file }, `${variable}: changed file reloaded`);
    } catch (error) {
      if (!isSame(await look(), found)) return;
      seen = found;
      onReload('failed');
      log.error(
        { provider, file, error: (error as Error).message },
        `${variable}: changed file cannot be read; the last good version stays in use`,
      );
    }
  };
  let isReloading = false;
  const check = async (): Promise<void> => {
    if (isReloading) return;
    isReloading = true;
    await reload();
    isReloading = false;
  };
  const timer = setInterval(check, CHECK_MS).unref();
  return { current: () => content, close: () => clearInterval(timer) };
};

const isSame = (a: Stats | null, b: Stats | null): boolean =>
  a?.mtimeMs === b?.mtimeMs && a?.size === b?.size && a?.ino === b?.ino;
