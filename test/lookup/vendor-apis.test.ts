import { join } from 'node:path';
import pino from 'pino';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { loadConfig } from '../../platform/config/config.ts';
import { PROVIDERS_FOLDER, presetNames } from '../../platform/config/provider-settings.ts';
import { buildChain } from '../../processors/lookup/providers/chain.ts';
import { type ApiProviderOptions, createApiProvider } from '../../processors/lookup/providers/http.ts';
import { parsePreset, readPreset } from '../../processors/lookup/providers/mapping.ts';
import { Unavailable } from '../../processors/lookup/providers/provider.ts';
import {
  type Answer,
  type AnsweringServer,
  json,
  startAnsweringServer,
} from '../support/answering-server.ts';

const GUARD = {
  admit: () => null,
  takeFromBudget: async () => true,
  today: () => '2026-03-01',
  breakerPeriodMs: 30_000,
  onBreaker: () => undefined,
};
const never = new AbortController().signal;
let server: AnsweringServer;
beforeAll(async () => {
  server = await startAnsweringServer();
});
afterAll(() => server.close());

const presetOf = (name: string) =>
  readPreset(join(PROVIDERS_FOLDER, 'apis', `${name}.json`), name) as ApiProviderOptions['preset'];
/** The preset's provider with its path at the test's server. */
const open = (name: string, preset = presetOf(name)) =>
  createApiProvider({
    name,
    preset,
    url: preset.request.url.replace(/^https:\/\/[^/]+/, server.base),
    token: 's&cret',
    timeoutMs: 500,
  });
const known = (fields: object | null | undefined) =>
  Object.fromEntries(Object.entries(fields ?? {}).filter(([, value]) => value !== null));
const said = async (name: string, body: object) => {
  server.answers(json(200, body));
  const provider = open(name);
  const found = await provider.lookup('8.8.8.8', never);
  await provider.close();
  return { match_type: found?.match_type, network: known(found?.network), company: known(found?.company) };
};
const BUSINESS = {
  connection_type: 'corporate',
  audience_type: 'business',
  audience_group: 'business',
  is_isp: false,
};

describe("a vendor's API", () => {
  it('has a preset for each packaged file, which says how to call it', () => {
    expect(presetNames()).toEqual(['ipapi-is', 'ipdata', 'ipinfo', 'iplocate']);
    for (const name of presetNames()) {
      const { request } = presetOf(name);
      expect(request).toMatchObject({ url: expect.stringMatching(/^https:.*\{ip\}/), answers_for: '/ip' });
    }
  });

  test.each<[string, object, object]>([
    [
      'ipinfo',
      {
        ip: '8.8.8.8',
        city: 'Oslo',
        asn: { asn: 'AS1', name: 'Telia', domain: 'telia.com', type: 'isp' },
        company: { name: 'Acme', domain: 'acme.example', type: 'business' },
        privacy: { vpn: false, proxy: false, tor: false, relay: false, hosting: false, service: '' },
      },
      {
        match_type: 'company',
        network: BUSINESS,
        company: { name: 'Acme', website: 'https://acme.example' },
      },
    ],
    [
      'ipinfo',
      { ip: '8.8.8.8', company: { name: 'Telia', domain: 'telia.com', type: 'isp' }, privacy: { vpn: true } },
      {
        match_type: 'isp',
        network: { connection_type: 'vpn', audience_group: 'isp', is_isp: true },
        company: { name: 'Telia' },
      },
    ],
    ['ipinfo', { ip: '8.8.8.8', bogon: true }, { match_type: 'unclassified', network: {}, company: {} }],
    [
      'ipapi-is',
      {
        ip: '8.8.8.8',
        is_datacenter: true,
        is_vpn: false,
        company: { name: 'Cloud', domain: 'cloud.example', type: 'hosting' },
        asn: { asn: 1, org: 'Cloud AS', type: 'hosting' },
      },
      {
        match_type: 'unclassified',
        network: { connection_type: 'data-center', audience_group: 'hosting', is_isp: false },
        company: { name: 'Cloud' },
      },
    ],
    [
      'ipapi-is',
      {
        ip: '8.8.8.8',
        is_datacenter: false,
        company: { name: 'Bank', domain: 'bank.example', type: 'banking' },
      },
      {
        match_type: 'company',
        network: { ...BUSINESS, audience_group: 'banking' },
        company: { name: 'Bank', website: 'https://bank.example' },
      },
    ],
    [
      'iplocate',
      {
        ip: '8.8.8.8',
        country_code: 'US',
        company: { name: 'School', domain: 'school.example', country_code: 'NO', type: 'education' },
        privacy: { is_vpn: false, is_hosting: false },
      },
      {
        match_type: 'company',
        network: { ...BUSINESS, connection_type: 'education', audience_group: 'education' },
        company: { name: 'School', website: 'https://school.example', country_code: 'NO' },
      },
    ],
    [
      'ipdata',
      {
        ip: '8.8.8.8',
        asn: { asn: 'AS1', name: 'Acme', domain: 'acme.example', type: 'business' },
        threat: { is_tor: false, is_datacenter: false },
      },
      {
        match_type: 'company',
        network: BUSINESS,
        company: { name: 'Acme', website: 'https://acme.example' },
      },
    ],
  ])('%s: its answer is mapped to Network and Company', async (name, body, expected) => {
    expect(await said(name, body)).toEqual(expected);
  });

  it('is sent the address and the token where the preset has them', async () => {
    server.answers(json(200, { ip: '2600:0:0::1' }));
    for (const [name, path, authorization] of [
      ['ipinfo', '/2600%3A%3A1/json', 'Bearer s&cret'],
      ['ipapi-is', '/?q=2600%3A%3A1&key=s%26cret', undefined],
    ] as const) {
      const provider = open(name);
      await provider.lookup('2600::1', never);
      expect(server.asked.at(-1)).toEqual({ path, authorization });
      await provider.close();
    }
  });

  test.each<[string, Answer, RegExp]>([
    [
      'an error with status 200',
      json(200, { error: 'quota' }),
      /^wrong answer: it does not name the address/,
    ],
    ["another address's answer", json(200, { ip: '9.9.9.9' }), /^wrong answer/],
    ['404', json(404, {}), /^answered 404$/],
    ['429', json(429, {}), /^answered 429$/],
    ['a wrong type', json(200, { ip: '8.8.8.8', company: { type: 'isp', name: {} } }), /^wrong record/],
    ['a reset', (response) => response.destroy(), /^no answer/],
  ])('fails on %s, and its failure holds no token', async (_what, how, message) => {
    server.answers(how);
    const provider = open('iplocate');
    const failure = await provider.lookup('8.8.8.8', never).catch((error: Error) => error);
    expect(failure).toBeInstanceOf(Error);
    expect((failure as Error).message).toMatch(message);
    expect(String((failure as Error).stack)).not.toContain('cret');
    await provider.close();
  });

  test.each([
    [503, true],
    [401, true],
    [402, true],
    [429, true],
    [302, true],
    [400, false],
    [404, false],
    [422, false],
  ])('that answers %i is unavailable for every address: %s', async (status, isUnavailable) => {
    server.answers(json(status, {}));
    const provider = open('iplocate');
    const failure = await provider.lookup('8.8.8.8', never).catch((error: Error) => error);
    expect(failure instanceof Unavailable).toBe(isUnavailable);
    await provider.close();
  });

  it('without its token stops the start with the name of the variable', async () => {
    const config = loadConfig({ ENRICHMENT_PROVIDERS: 'directory,ipinfo' });
    await expect(buildChain(config, { log: pino({ level: 'silent' }), guard: GUARD })).rejects.toThrow(
      'IPINFO_TOKEN is not set, but ENRICHMENT_PROVIDERS names ipinfo',
    );
  });

  test.each([
    ['{"company.nam": "/x"}', /company\.nam|Unrecognized|Invalid key/i],
    ['{"company.name": "x"}', /company\.name/],
    ['{"request": {"url": "https://x.example/"}}', /request\.url has no \{ip\}/],
    ['{', /JSON/],
  ])('has no preset that reads %s', (text, message) => {
    expect(() => parsePreset(text)).toThrow(message);
  });
});
