import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { createDirectoryProvider, parseDirectory } from '../../processors/lookup/providers/directory.ts';
import { createHttpProvider } from '../../processors/lookup/providers/http.ts';
import { applyMapping, mappingSchema } from '../../processors/lookup/providers/mapping.ts';
import { askChain, type Provider } from '../../processors/lookup/providers/provider.ts';
import {
  type Answer,
  type AnsweringServer,
  json,
  startAnsweringServer,
} from '../support/answering-server.ts';
import { until } from '../support/until.ts';

const log = pino({ level: 'silent' });
const never = new AbortController().signal;
const block = (cidr: string, name: string) =>
  JSON.stringify({ cidr, match_type: 'company', company: { name } });

describe('the directory', () => {
  const parse = (text: string) => parseDirectory(Buffer.from(text));
  const parsed = parse(
    [
      block('8.0.0.0/8', 'wide'),
      block('8.8.8.0/25', 'narrow'),
      block('8.8.8.8/32', 'one'),
      '',
      block('2001:4860::/33', 'six'),
    ].join('\n'),
  );
  test.each([
    ['8.8.8.8', 'one'],
    ['8.8.8.127', 'narrow'],
    ['8.8.8.128', 'wide'],
    ['9.0.0.1', undefined],
    ['2001:4860:7fff::1', 'six'],
    ['2001:4860:8000::1', undefined],
  ])('answers for %s: %s', async (ip, name) => {
    const directory = await parsed;
    expect(directory.find(ip)?.company?.name).toBe(name);
  });
  test.each([
    ['{"cidr":"8.8.8.0/24","match_type":"firm"}', /^line 1: wrong record: match_type/],
    ['{"cidr":"8.8.8.0/33","match_type":"isp"}', /^line 1: '8.8.8.0\/33' is no CIDR block/],
    ['{"cidr":"8.8.8.0","match_type":"isp"}', /is no CIDR block/],
    ['not json', /^line 1:/],
    ['{"cidr":"8.8.8.0/24","match_type":"company","company":{"name":"a\\u0000"}}', /cannot be stored/],
    [`{"cidr":"8.8.8.0/24","match_type":"company","company":{"name":"${'語'.repeat(5_500)}"}}`, /too large/],
    [
      `{"cidr":"8.8.8.0/24","match_type":"company","company":${JSON.stringify(
        Object.fromEntries(
          ['name', 'city', 'region', 'industry', 'website'].map((field) => [field, 'x'.repeat(14_000)]),
        ),
      )}}`,
      /it is too large/,
    ],
    ['{"cidr":"8.8.8.0/24","match_type":"company","fresh_for_days":0}', /fresh_for_days/],
  ])('refuses %s', async (line, message) => {
    await expect(parse(line)).rejects.toThrow(message);
  });
  it('is read behind a byte order mark, also when its file changes', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'doorplate-directory-'));
    const file = join(folder, 'directory.jsonl');
    await writeFile(file, `\uFEFF${block('8.0.0.0/8', 'before')}`);
    const provider = await createDirectoryProvider(file, log);
    const name = async () => (await provider.lookup('8.8.8.8', never))?.company?.name;
    expect(await name()).toBe('before');
    await writeFile(file, `\uFEFF${block('8.0.0.0/8', 'afterwards')}\n`);
    await until('the new content', async () => (await name()) === 'afterwards');
    provider.close();
    await rm(folder, { recursive: true });
  });
  it('is read again when its file changes and keeps the last valid version', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'doorplate-directory-'));
    const file = join(folder, 'directory.jsonl');
    await writeFile(file, block('8.0.0.0/8', 'before'));
    const provider = await createDirectoryProvider(file, log);
    const name = async () => (await provider.lookup('8.8.8.8', never))?.company?.name;
    expect(await name()).toBe('before');
    await writeFile(file, 'broken');
    await writeFile(file, block('8.0.0.0/8', 'afterwards'));
    await until('the new content', async () => (await name()) === 'afterwards');
    provider.close();
    await rm(folder, { recursive: true });
  });
  it('stops the start with its file name when the file is missing', async () => {
    await expect(createDirectoryProvider('/nowhere.jsonl', log)).rejects.toThrow(
      'ENRICHMENT_DIRECTORY /nowhere.jsonl',
    );
  });
});

describe('an HTTP provider', () => {
  let server: AnsweringServer;
  let url: string;
  beforeAll(async () => {
    server = await startAnsweringServer();
    url = `${server.base}/v/{ip}?x=1`;
  });
  afterAll(() => server.close());
  const provider = (over: object = {}) =>
    createHttpProvider({ url, token: 'secret', timeoutMs: 500, mapping: null, ...over });

  it('sends the address and the token and maps the record', async () => {
    server.answers(json(200, { match_type: 'isp', network: { is_isp: true }, unknown: 1 }));
    const http = provider();
    expect(await http.lookup('2600::1', never)).toMatchObject({
      match_type: 'isp',
      network: { is_isp: true },
      company: null,
    });
    expect(server.asked.at(-1)).toEqual({ path: '/v/2600%3A%3A1?x=1', authorization: 'Bearer secret' });
    await http.close();
  });
  it('treats 404 as an unknown address', async () => {
    server.answers(json(404, {}));
    const http = provider();
    expect(await http.lookup('8.8.8.8', never)).toBeNull();
    await http.close();
  });
  const LARGE = 'x'.repeat(400_000);
  test.each<[string, Answer, RegExp]>([
    ['500', json(500, {}), /answered 500/],
    ['a redirect', (response) => response.writeHead(302, { location: '/' }).end(), /answered 302/],
    ['a wrong shape', json(200, { match_type: 'firm' }), /wrong record/],
    ['no JSON', (response) => response.end('<html>'), /unreadable/],
    ['too much', json(200, { match_type: 'isp', x: LARGE }), /unreadable|no answer/],
    ['a hanging answer', () => undefined, /timed out/],
    ['a hanging body', (response) => response.writeHead(200).write('{'), /timed out/],
    ['a reset', (response) => response.destroy(), /no answer/],
  ])('fails on %s, which never becomes a negative match', async (_name, how, message) => {
    server.answers(how);
    const http = provider();
    await expect(http.lookup('8.8.8.8', never)).rejects.toThrow(message);
    await http.close();
  });
  it("reads another vendor's record through a field map", () => {
    const mapping = mappingSchema.parse({
      'company.name': '/org/0/a~1b',
      'network.is_isp': '/isp',
      'company.employees': '/n',
    });
    expect(applyMapping(mapping, { org: [{ 'a/b': 'Acme' }], isp: false, n: 12 })).toEqual({
      match_type: 'company',
      company: { name: 'Acme', employees: 12 },
      network: { is_isp: false },
    });
    expect(applyMapping(mapping, { isp: true })).toMatchObject({
      match_type: 'isp',
      company: { name: null },
    });
    expect(mappingSchema.safeParse({ 'company.nam': '/x' }).success).toBe(false);
    expect(mappingSchema.safeParse({ 'company.name': 'x' }).success).toBe(false);
  });
});

describe('a chain of providers', () => {
  const says = (name: string, match_type: 'company' | 'isp'): Provider => ({
    name,
    lookup: async () => ({ match_type, network: null, company: null, fresh_for_days: null }),
  });
  const knowsNothing: Provider = { name: 'nothing', lookup: async () => null };
  const fails: Provider = { name: 'fails', lookup: () => Promise.reject(new Error('timed out')) };
  const names = async (chain: Provider[]) =>
    (await askChain(chain, '8.8.8.8', never)).map((answer) => answer.provider);
  it('ends with the first company found', async () => {
    expect(await names([says('a', 'isp'), says('b', 'company'), says('c', 'company')])).toEqual(['a', 'b']);
  });
  it.each(['10.0.0.1', 'fd00::1', '192.0.2.7', '127.0.0.1'])(
    'asks no provider about %s, which is not public',
    async (ip) => {
      const asked: string[] = [];
      const spy: Provider = {
        name: 'spy',
        lookup: async (one) => {
          asked.push(one);
          return null;
        },
      };
      expect(await askChain([spy], ip, never)).toMatchObject([{ record: { match_type: 'unclassified' } }]);
      expect(asked).toEqual([]);
    },
  );
  it('continues after a failure and after an unknown address', async () => {
    expect(await askChain([fails, knowsNothing, says('c', 'company')], '8.8.8.8', never)).toMatchObject([
      { provider: 'fails', failure: 'timed out' },
      { provider: 'nothing', record: { match_type: 'unclassified' } },
      { provider: 'c', record: { match_type: 'company' } },
    ]);
  });
});
