import type { Logger } from 'pino';
import { describeMmdb, type Mmdb, openMmdb, openReloadingFile } from '../../../platform/data-file.ts';
import { applyVendorMapping, databasePresets, type Preset, presetForDatabase } from './mapping.ts';
import { type Provider, parseProviderRecord } from './provider.ts';

export interface DatabaseProviderOptions {
  readonly name: string;
  readonly file: string;
  /** Names the file in errors. */
  readonly variable: string;
  /** Replaces the packaged mapping for the database's type. */
  readonly preset: Preset | null;
  readonly log: Logger;
  readonly onReload?: (outcome: 'reloaded' | 'failed') => void;
}

interface OpenDatabase {
  readonly mmdb: Mmdb;
  readonly preset: Preset;
}

const SAMPLES = 20;

/** The types that hold visitors' locations and nothing of networks and companies. */
const IS_LOCATION = /^(?:GeoIP2|GeoLite2|DBIP)-(?:City|Country)|^ipinfo (?:standard|extended)_location/;

/**
 * Creates a provider from a vendor's database (MMDB). The type in its metadata chooses the mapping. It is read again
 * when it changes.
 * @throws Error that names the file, and what was found in a database of an unknown type, at startup only
 */
export async function createDatabaseProvider({
  name,
  file,
  variable,
  preset,
  log,
  onReload,
}: DatabaseProviderOptions): Promise<Provider & { close(): void }> {
  const packaged = databasePresets();
  const database = await openReloadingFile<OpenDatabase>({
    file,
    parse: (content) => {
      const mmdb = openMmdb(content);
      const chosen = preset ?? presetForDatabase(packaged, mmdb.type);
      if (chosen === null) throw new Error(unknownType(mmdb, variable));
      for (const record of mmdb.sample(SAMPLES)) toRecord(chosen, record);
      return { mmdb, preset: chosen };
    },
    log,
    provider: name,
    variable,
    onReload,
  });
  return {
    name,
    lookup: async (ip, _signal, { onRaw } = {}) => {
      const { mmdb, preset: chosen } = database.current();
      const record = mmdb.find(ip);
      onRaw?.(record);
      return record === null ? null : toRecord(chosen, record);
    },
    close: database.close,
  };
}

const toRecord = ({ mapping }: Preset, record: unknown) =>
  parseProviderRecord(applyVendorMapping(mapping, record));

function unknownType(mmdb: Mmdb, variable: string): string {
  const found = describeMmdb(mmdb, mmdb.sample(SAMPLES));
  return IS_LOCATION.test(mmdb.type)
    ? `${found}: it holds locations, not companies or networks`
    : `${found}, for which there is no mapping: ${variable.replace(/_FILE$/, '_MAP')} can name one (docs/providers.md)`;
}
