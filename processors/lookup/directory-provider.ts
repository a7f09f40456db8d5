import type { Logger } from 'pino';
import { type Directory, parseDirectory } from './directory-entries.ts';
import { fieldNames, openMmdb } from './mmdb.ts';
import type { Provider } from './provider.ts';
import { parseProviderRecord } from './provider-record.ts';
import { openReloadingFile } from './reloading-file.ts';

const VARIABLE = 'ENRICHMENT_DIRECTORY';

const parseFile = (file: string, content: Buffer): Directory | Promise<Directory> => {
  if (!file.endsWith('.mmdb')) return parseDirectory(content);
  const { type, find, sample } = openMmdb(content);
  const [first] = sample(1);
  if (first !== undefined && !fieldNames(first).includes('match_type')) {
    throw new Error(
      `is a database of the type '${type}', whose records have no match_type: for a vendor's database, ` +
        'ENRICHMENT_PROVIDERS takes a name of your choice, and NAME_FILE the file (docs/providers.md)',
    );
  }
  return {
    find: (ip) => {
      const record = find(ip);
      return record === null ? null : parseProviderRecord(record);
    },
  };
};

/**
 * Creates a provider from the operator's file of address blocks, JSON Lines or MMDB (by the ending `.mmdb`), which is
 * read again when it changes.
 * @throws Error that names the file and the fault, at startup only
 */
export const createDirectoryProvider = async (
  file: string,
  log: Logger,
  onReload?: (outcome: 'reloaded' | 'failed') => void,
): Promise<Provider & { close(): void }> => {
  const directory = await openReloadingFile({
    file,
    parse: (content) => parseFile(file, content),
    log,
    provider: 'directory',
    variable: VARIABLE,
    onReload,
  });
  return {
    name: 'directory',
    lookup: async (ip, _signal, { onRaw } = {}) => {
      const record = directory.current().find(ip);
      onRaw?.(record);
      return record;
    },
    close: directory.close,
  };
};
