import { type Stats, unwatchFile, watchFile } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { Reader } from 'maxmind';
import type { Logger } from 'pino';
import { type Directory, parseDirectory } from './directory-entries.ts';
import type { Provider } from './provider.ts';
import { parseProviderRecord } from './provider-record.ts';

const CHECK_MS = 1_000;

const read = async (file: string): Promise<Directory> => {
  const content = await readFile(file);
  if (!file.endsWith('.mmdb')) return parseDirectory(content.toString('utf8'));
  const reader = new Reader(content);
  return {
    find: (ip) => {
      const record = reader.get(ip);
      return record === null ? null : parseProviderRecord(record);
    },
  };
};

/**
 * Creates a provider from the operator's file of address blocks, JSON Lines or MMDB (by the ending `.mmdb`). A changed
 * file is reloaded within seconds; if it cannot be read, the last good one stays in use.
 * @throws Error that names the file and the fault, at startup only
 */
export const createDirectoryProvider = async (
  file: string,
  log: Logger,
): Promise<Provider & { close(): void }> => {
  let directory = await read(file).catch((error: Error) => {
    throw new Error(`ENRICHMENT_DIRECTORY ${file}: ${error.message}`);
  });
  const reload = (now: Stats, before: Stats): void => {
    if (now.mtimeMs === before.mtimeMs && now.size === before.size && now.ino === before.ino) return;
    read(file).then(
      (fresh) => {
        directory = fresh;
        log.info({ file }, 'directory file reloaded');
      },
      (error: Error) =>
        log.error(
          { file, error: error.message },
          'changed directory file cannot be read; the last good version stays in use',
        ),
    );
  };
  watchFile(file, { interval: CHECK_MS, persistent: false }, reload);
  return {
    name: 'directory',
    lookup: async (ip) => directory.find(ip),
    close: () => unwatchFile(file, reload),
  };
};
