import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { loadConfig } from '../../platform/config/config.ts';
import { type Countries, createCountries } from '../../platform/country.ts';

let folder: string;
let countryOf: Countries;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'doorplate-countries-'));
  countryOf = await createCountries(undefined);
});
afterAll(() => rm(folder, { recursive: true }));

describe('the country of a visitor', () => {
  test.each<[string, string | null]>([
    ['8.8.8.8', 'US'],
    ['85.214.1.1', 'DE'],
    ['2a00:1450:4001:81b::200e', 'DE'],
    ['10.0.0.1', null],
    ['127.0.0.1', null],
    ['192.0.2.1', null],
    ['::1', null],
    ['::', null],
    ['fe80::1', null],
    ['2002:808:808::1', null],
  ])('of %s is %s', (ip, country) => {
    expect(countryOf(ip)).toBe(country);
  });

  it('cannot be read from an invalid file, and the start names the file', async () => {
    const file = join(folder, 'no.mmdb');
    expect(() => loadConfig({ COUNTRY_MMDB: file })).toThrow(
      `COUNTRY_MMDB names a file that cannot be read: ${file}`,
    );
    await writeFile(file, 'not one');
    await expect(createCountries(file)).rejects.toThrow(`COUNTRY_MMDB ${file}`);
  });
});
