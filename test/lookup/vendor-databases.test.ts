import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { createDatabaseProvider } from '../../processors/lookup/providers/database.ts';
import { createDirectoryProvider } from '../../processors/lookup/providers/directory.ts';
import { parsePreset } from '../../processors/lookup/providers/mapping.ts';
import { type MmdbValue, makeMmdb } from '../support/mmdb.ts';
import { until } from '../support/until.ts';

const log = pino({ level: 'silent' });
const never = new AbortController().signal;
let folder: string;
let files = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'doorplate-databases-'));
});
afterAll(() => rm(folder, { recursive: true }));

const write = async (content: Buffer): Promise<string> => {
  files += 1;
  const file = join(folder, `${files}.mmdb`);
  await writeFile(file, content);
  return file;
};
const open = (file: string, more: Partial<Parameters<typeof createDatabaseProvider>[0]> = {}) =>
  createDatabaseProvider({ name: 'vendor', file, variable: 'VENDOR_FILE', preset: null, log, ...more });
/** What a database of one record says of an address in it, without unknown fields. */
const said = async (type: string, record: MmdbValue) => {
  const provider = await open(await write(makeMmdb(type, { '8.8.8.0/24': record })));
  const found = await provider.lookup('8.8.8.8', never);
  provider.close();
  const known = (fields: object | null | undefined) =>
    Object.fromEntries(Object.entries(fields ?? {}).filter(([, value]) => value !== null));
  return { match_type: found?.match_type, network: known(found?.network), company: known(found?.company) };
};
const enterprise = (traits: MmdbValue) => ({ country: { iso_code: 'SE' }, traits });

describe("a vendor's database", () => {
  test.each<[string, string, MmdbValue, object]>([
    [
      'Enterprise, a business',
      'GeoIP2-Enterprise',
      enterprise({ user_type: 'business', organization: 'Acme', isp: 'Telia', connection_type: 'Cable/DSL' }),
      {
        match_type: 'company',
        network: {
          connection_type: 'corporate',
          audience_type: 'business',
          audience_group: 'business',
          is_isp: false,
        },
        company: { name: 'Acme' },
      },
    ],
    [
      'Enterprise, a home',
      'GeoIP2-Enterprise',
      enterprise({ user_type: 'residential', organization: 'Telia', isp: 'Telia' }),
      {
        match_type: 'isp',
        network: {
          connection_type: 'residential',
          audience_type: 'consumer',
          audience_group: 'residential',
          is_isp: true,
        },
        company: { name: 'Telia' },
      },
    ],
    [
      'Enterprise, a business without a name',
      'GeoIP2-Enterprise-Shield',
      enterprise({ user_type: 'business' }),
      {
        match_type: 'unclassified',
        network: {
          connection_type: 'corporate',
          audience_type: 'business',
          audience_group: 'business',
          is_isp: false,
        },
        company: {},
      },
    ],
    [
      'Enterprise, a data center',
      'GeoIP2-Enterprise',
      enterprise({ user_type: 'hosting', organization: 'Cloud', domain: 'cloud.example' }),
      {
        match_type: 'unclassified',
        network: { connection_type: 'data-center', audience_group: 'hosting', is_isp: false },
        company: { name: 'Cloud' },
      },
    ],
    [
      'ISP',
      'GeoIP2-ISP',
      { isp: 'Telia', organization: 'Acme', autonomous_system_number: 1301 },
      { match_type: 'unclassified', network: {}, company: { name: 'Acme' } },
    ],
    [
      'ISP, a mobile network',
      'GeoIP2-ISP',
      { isp: 'Verizon', mobile_network_code: '004' },
      {
        match_type: 'isp',
        network: { connection_type: 'mobile', is_isp: true },
        company: { name: 'Verizon' },
      },
    ],
    [
      'Domain',
      'GeoIP2-Domain',
      { domain: 'acme.example' },
      { match_type: 'unclassified', network: {}, company: { website: 'https://acme.example' } },
    ],
    [
      'Connection-Type',
      'GeoIP2-Connection-Type',
      { connection_type: 'Cable/DSL' },
      { match_type: 'isp', network: { connection_type: 'broadband', is_isp: true }, company: {} },
    ],
    [
      'Anonymous-IP',
      'GeoIP2-Anonymous-IP',
      { is_anonymous: true, is_tor_exit_node: true, is_hosting_provider: true },
      { match_type: 'unclassified', network: { connection_type: 'tor', is_isp: false }, company: {} },
    ],
    [
      'ASN',
      'GeoLite2-ASN',
      { autonomous_system_number: 15169, autonomous_system_organization: 'Google LLC' },
      { match_type: 'unclassified', network: {}, company: { name: 'Google LLC' } },
    ],
    [
      'IPinfo company',
      'ipinfo standard_company.mmdb',
      {
        name: 'Acme',
        domain: 'acme.example',
        type: 'business',
        country: 'JP',
        as_name: 'Telia',
        as_type: 'isp',
      },
      {
        match_type: 'company',
        network: {
          connection_type: 'corporate',
          audience_type: 'business',
          audience_group: 'business',
          is_isp: false,
        },
        company: { name: 'Acme', website: 'https://acme.example', country_code: 'JP' },
      },
    ],
    [
      'IPinfo company, an ISP',
      'ipinfo standard_company.mmdb',
      { name: 'Telia', domain: 'telia.com', type: 'isp', country: 'SE' },
      { match_type: 'isp', network: { audience_group: 'isp', is_isp: true }, company: { name: 'Telia' } },
    ],
    [
      'IPinfo ASN, without a domain',
      'ipinfo generic_asn_mmdb_v4.mmdb',
      { asn: 'AS1', name: 'College', domain: '', type: 'education' },
      {
        match_type: 'company',
        network: {
          connection_type: 'education',
          audience_type: 'business',
          audience_group: 'education',
          is_isp: false,
        },
        company: { name: 'College' },
      },
    ],
    [
      'IPinfo privacy, flags as text',
      'ipinfo standard_privacy.mmdb',
      { hosting: 'true', proxy: '', tor: '', vpn: 'true' },
      { match_type: 'unclassified', network: { connection_type: 'vpn', is_isp: false }, company: {} },
    ],
    [
      'IPinfo privacy, flags',
      'ipinfo standard_privacy_new.mmdb',
      { hosting: false, proxy: true, tor: false, vpn: false },
      { match_type: 'unclassified', network: { connection_type: 'proxy' }, company: {} },
    ],
    [
      'IPinfo Plus, a mobile network',
      'ipinfo bundle_location_plus.mmdb',
      { as_name: 'EE', as_type: 'isp', is_mobile: true, city: 'London' },
      {
        match_type: 'isp',
        network: { connection_type: 'mobile', audience_group: 'isp', is_isp: true },
        company: { name: 'EE' },
      },
    ],
    [
      'IPinfo Lite',
      'ipinfo bundle_location_lite.mmdb',
      { as_name: 'Google LLC', as_domain: 'google.com', country_code: 'US' },
      { match_type: 'unclassified', network: {}, company: { name: 'Google LLC' } },
    ],
    [
      'DB-IP ISP',
      'DBIP-ISP (compat=Enterprise)',
      enterprise({ user_type: 'cellular', isp: 'EE', connection_type: 'Cellular' }),
      {
        match_type: 'isp',
        network: {
          connection_type: 'mobile',
          audience_type: 'consumer',
          audience_group: 'cellular',
          is_isp: true,
        },
        company: { name: 'EE' },
      },
    ],
    [
      'DB-IP ASN',
      'DBIP-ASN-Lite (compat=GeoLite2-ASN)',
      { autonomous_system_organization: 'Acme' },
      { match_type: 'unclassified', network: {}, company: { name: 'Acme' } },
    ],
  ])('%s is mapped to Network and Company', async (_title, type, record, expected) => {
    expect(await said(type, record)).toEqual(expected);
  });

  it('answers null for an address that it does not hold, IPv6 too', async () => {
    const provider = await open(
      await write(makeMmdb('GeoLite2-ASN', { '2600::/16': { autonomous_system_organization: 'Six' } })),
    );
    expect(await provider.lookup('9.9.9.9', never)).toBeNull();
    expect(await provider.lookup('2601::1', never)).toBeNull();
    expect(await provider.lookup('2600::1', never)).toMatchObject({ company: { name: 'Six' } });
    provider.close();
  });

  it('is refused with its type and fields when there is no mapping for it', async () => {
    const file = await write(makeMmdb('Acme-Cafes', { '1.0.0.0/8': { cafe: { name: 'Blue' }, seats: 4 } }));
    await expect(open(file)).rejects.toThrow(
      `VENDOR_FILE ${file}: is a database of the type 'Acme-Cafes' with the fields cafe.name, seats, ` +
        'for which there is no mapping: VENDOR_MAP can name one',
    );
  });
  it('is refused with a reason of its own when it holds locations alone', async () => {
    const file = await write(makeMmdb('GeoLite2-City', { '1.0.0.0/8': { city: { names: { en: 'Oslo' } } } }));
    await expect(open(file)).rejects.toThrow(/holds locations, not companies/);
  });
  it('of an unknown type is mapped by the mapping that the operator names', async () => {
    const preset = parsePreset(
      '{"match_type": {"from": "/cafe", "value": "company"}, "company.name": "/cafe/name"}',
    );
    const file = await write(makeMmdb('Acme-Cafes', { '1.0.0.0/8': { cafe: { name: 'Blue' } } }));
    const provider = await open(file, { preset });
    expect(await provider.lookup('1.1.1.1', never)).toMatchObject({
      match_type: 'company',
      company: { name: 'Blue' },
    });
    provider.close();
  });
  test.each([
    ['cut off', (whole: Buffer) => whole.subarray(whole.length / 2)],
    ['no MMDB', () => Buffer.from('name,city\nAcme,Oslo\n')],
    ['empty', () => Buffer.alloc(0)],
  ])('that is %s stops the start with its file name', async (_what, damage) => {
    const file = await write(damage(makeMmdb('GeoLite2-ASN', { '1.0.0.0/8': {} })));
    await expect(open(file)).rejects.toThrow(`VENDOR_FILE ${file}: `);
  });

  it('is reloaded when it changes, and a damaged or unknown one leaves the last good one in use', async () => {
    const named = (name: string) =>
      makeMmdb('GeoLite2-ASN', { '8.0.0.0/8': { autonomous_system_organization: name } });
    const file = await write(named('before'));
    const outcomes: string[] = [];
    const provider = await open(file, { onReload: (outcome) => outcomes.push(outcome) });
    const name = async () => (await provider.lookup('8.8.8.8', never))?.company?.name;
    const replace = async (content: Buffer): Promise<void> => {
      await writeFile(`${file}.new`, content);
      await rename(`${file}.new`, file);
    };
    await replace(Buffer.from('damaged'));
    await until('the damaged file was noticed', () => outcomes.length === 1);
    await replace(makeMmdb('Acme-Cafes', { '8.0.0.0/8': { cafe: 'Blue' } }));
    await until('the unknown file was noticed', () => outcomes.length === 2);
    expect(await name()).toBe('before');
    await replace(named('afterwards'));
    await until('the new content', async () => (await name()) === 'afterwards');
    expect(outcomes).toEqual(['failed', 'failed', 'reloaded']);
    provider.close();
  });
});

describe('the directory', () => {
  it('takes an MMDB of its own records', async () => {
    const record = { match_type: 'company', company: { name: 'Acme' } };
    const directory = await createDirectoryProvider(
      await write(makeMmdb('ours', { '8.8.8.0/24': record })),
      log,
    );
    expect(await directory.lookup('8.8.8.8', never)).toMatchObject(record);
    directory.close();
  });
  it("refuses a vendor's database at the start and says how to name it", async () => {
    const file = await write(makeMmdb('GeoIP2-ISP', { '8.8.8.0/24': { isp: 'Telia' } }));
    await expect(createDirectoryProvider(file, log)).rejects.toThrow(/'GeoIP2-ISP'.*NAME_FILE/);
  });
});
