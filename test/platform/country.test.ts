import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { loadConfig } from '../../platform/config/config.ts';
import { type Countries, createCountries } from '../../platform/country.ts';
import { openMmdb } from '../../platform/data-file.ts';
import { createLogger } from '../../platform/telemetry/log.ts';
import { eventually } from '../support/eventually.ts';
import { makeMmdb } from '../support/mmdb.ts';

let folder: string;
let packaged: Countries;
const log = createLogger({ level: 'silent', destination: 'stderr' });
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'doorplate-countries-'));
  packaged = await createCountries(undefined, log);
});
afterAll(async () => {
  packaged.close();
  await rm(folder, { recursive: true });
});

/** The error of a start with this file. */
const refusal = async (content: Buffer): Promise<string> => {
  const file = join(folder, 'refused.mmdb');
  await writeFile(file, content);
  return createCountries(file, log).then(
    () => 'none',
    (error: Error) => error.message.replace(`COUNTRY_MMDB ${file}: `, ''),
  );
};

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
    expect(packaged.countryOf(ip)).toBe(country);
  });

  it('cannot be read from an invalid file, and the start names the file', async () => {
    const file = join(folder, 'no.mmdb');
    expect(() => loadConfig({ COUNTRY_MMDB: file })).toThrow(
      `COUNTRY_MMDB names a file that cannot be read: ${file}`,
    );
  });

  it.each([
    ['empty', Buffer.alloc(0), 'the file is empty'],
    ['packed', gzipSync('x'), 'the file is packed by gzip: unpack it'],
    ['of another kind', Buffer.from('not one'), 'the file is not an MMDB database'],
    [
      'without any country',
      makeMmdb('GeoLite2-Country', { '9.0.0.0/8': { country: 'DE', asn: 1 } }),
      "is a database of the type 'GeoLite2-Country' with the fields asn, country, and none of its first records has a code in country.iso_code or country_code",
    ],
  ])('stops the start with what the file is: %s', async (_what, content, message) => {
    expect(await refusal(content)).toBe(message);
  });

  it('is null where a record has another type, and follows the file', async () => {
    const file = join(folder, 'own.mmdb');
    const country = (iso_code: string | number) => ({ country: { iso_code } });
    await writeFile(file, makeMmdb('X', { '9.0.0.0/8': country('fr'), '8.0.0.0/8': country(7) }));
    const own = await createCountries(file, log);
    expect(['9.1.1.1', '8.8.8.8', '1.1.1.1'].map(own.countryOf)).toEqual(['FR', null, null]);
    await writeFile(`${file}.new`, makeMmdb('X', { '9.0.0.0/8': country('SE') }));
    await rename(`${file}.new`, file);
    await eventually(
      'the changed file is read',
      () => own.countryOf('9.1.1.1'),
      (code) => code === 'SE',
    );
    own.close();
  });
});

describe('a damaged database', () => {
  const content = makeMmdb('X', {
    '8.0.0.0/8': { country: { iso_code: 'US', names: { en: 'United States' } } },
    '9.0.0.0/8': { country: { iso_code: 'FR', ratio: -1.5 } },
  });

  it('is told as damaged, whichever byte of it is wrong, and never by what the library stumbled on', () => {
    const messages = new Set<string>();
    for (let at = 0; at < content.length; at += 1) {
      for (const byte of [0x00, 0x20, 0x7f, 0xff]) {
        const damaged = Buffer.from(content);
        damaged[at] = byte;
        try {
          const mmdb = openMmdb(damaged);
          mmdb.sample(20);
          for (const ip of ['8.8.8.8', '9.9.9.9', '2001:db8::1']) mmdb.find(ip);
        } catch (error) {
          messages.add((error as Error).message);
        }
      }
    }
    expect([...messages].sort()).toEqual([
      'the file is cut off',
      'the file is damaged',
      'the file is not an MMDB database',
    ]);
  });
});
