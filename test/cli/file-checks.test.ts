import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { checkCountries, checkExtraCa, checkProviders } from '../../cli/operations/file-checks.ts';
import { loadConfig } from '../../platform/config/config.ts';
import { makeAuthority } from '../support/certificates.ts';
import { makeMmdb } from '../support/mmdb.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'doorplate-files-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const fileOf = (name: string, content: string | Buffer): string => {
  const file = join(folder, name);
  writeFileSync(file, content);
  return file;
};
const LINE = '{"cidr":"8.8.8.0/24","match_type":"isp"}\n';
const COUNTRIES = makeMmdb('GeoLite2-Country', { '8.0.0.0/8': { country: { iso_code: 'US' } } });

describe('the check of the country data', () => {
  const check = (content: Buffer) =>
    checkCountries(loadConfig({ COUNTRY_MMDB: fileOf('countries.mmdb', content) }));

  it('passes with the packaged table', async () => {
    expect(await checkCountries(loadConfig({}))).toMatchObject({
      ok: true,
      detail: expect.stringMatching(/days? old/),
    });
  });

  it('says what a start would of a file without a country', async () => {
    const { ok, detail } = await check(makeMmdb('GeoLite2-ASN', { '8.0.0.0/8': { asn: 'x' } }));
    expect(ok).toBe(false);
    expect(detail).toMatch(/^COUNTRY_MMDB .*is a database of the type 'GeoLite2-ASN' with the fields asn/);
  });

  it('says that a file is damaged', async () => {
    const content = Buffer.from(COUNTRIES);
    // A map whose first name is an extended type that the format does not have.
    content.fill(0x00, content.indexOf('country') - 1, content.indexOf('US'));
    const { ok, detail } = await check(content);
    expect(ok).toBe(false);
    expect(detail).toMatch(/the file is damaged$/);
  });

  it('says that the age of a file is unknown', async () => {
    const content = Buffer.from(COUNTRIES.toString('latin1').replace('build_epoch', 'built_other'), 'latin1');
    expect(await check(content)).toMatchObject({ ok: true, detail: 'of an unknown age (GeoLite2-Country)' });
  });
});

describe('the check of the providers', () => {
  const check = (env: Readonly<Record<string, string>>) => checkProviders(loadConfig(env));
  const passes = { ok: true, fix: null };

  it('passes with the sample, with files, and with a mapping, also behind a byte order mark', async () => {
    expect(await check({})).toMatchObject({ ...passes, detail: 'directory: their files can be read' });
    const ENRICHMENT_DIRECTORY = fileOf('marked.jsonl', `\uFEFF${LINE}`);
    expect(await check({ ENRICHMENT_DIRECTORY })).toMatchObject(passes);
    expect(
      await check({
        ENRICHMENT_PROVIDERS: 'http',
        ENRICHMENT_HTTP_URL: 'http://127.0.0.1:1/{ip}',
        ENRICHMENT_HTTP_MAP: fileOf('marked.json', '\uFEFF{"company.name": "/name"}'),
      }),
    ).toMatchObject(passes);
  });

  test.each([
    [
      'a wrong line of the directory',
      () => ({ ENRICHMENT_DIRECTORY: fileOf('wrong.jsonl', `${LINE}no JSON`) }),
      /^ENRICHMENT_DIRECTORY .*wrong\.jsonl: line 2: /,
    ],
    [
      'a directory in UTF-16',
      () => ({ ENRICHMENT_DIRECTORY: fileOf('utf16.jsonl', Buffer.from(`\uFEFF${LINE}`, 'utf16le')) }),
      /^ENRICHMENT_DIRECTORY .*: the file is UTF-16: save it as UTF-8$/,
    ],
    [
      'a database of an unknown type',
      () => ({ ENRICHMENT_PROVIDERS: 'vendor', VENDOR_FILE: fileOf('vendor.mmdb', makeMmdb('Other', {})) }),
      /^VENDOR_FILE .*: is a database of the type 'Other'/,
    ],
    [
      'a mapping that is none',
      () => ({
        ENRICHMENT_PROVIDERS: 'http',
        ENRICHMENT_HTTP_URL: 'http://127.0.0.1:1/{ip}',
        ENRICHMENT_HTTP_MAP: fileOf('none.json', '{"company.nam": "/x"}'),
      }),
      /^ENRICHMENT_HTTP_MAP .*none\.json: /,
    ],
    ['a vendor without its token', () => ({ ENRICHMENT_PROVIDERS: 'ipinfo' }), /IPINFO_TOKEN is not set/],
  ])('says what a start would of %s', async (_what, env, detail) => {
    const result = await check(env());
    expect(result.ok).toBe(false);
    expect(result.detail).toMatch(detail);
  });
});

describe('the check of the certificate authorities for webhooks', () => {
  const check = (content: string) =>
    checkExtraCa(loadConfig({ WEBHOOK_EXTRA_CA_FILE: fileOf('ca.pem', content) }));

  it('passes with PEM, also behind a byte order mark, and with nothing else', async () => {
    const { cert } = await makeAuthority();
    expect(await check(cert)).toMatchObject({ ok: true });
    expect(await check(`\uFEFF${cert}`)).toMatchObject({ ok: true });
    const { ok, detail } = await check('no certificate');
    expect(ok).toBe(false);
    expect(detail).toMatch(/^WEBHOOK_EXTRA_CA_FILE .*ca\.pem: /);
  });
});
