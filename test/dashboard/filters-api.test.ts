import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { countryCode, countryName } from '../../web/dashboard/countries.ts';
import { manualClock, startApi, type TestApi } from '../support/api.ts';
import { type LoggedIn, loggedIn, makeUser } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';
import { collect, feed, makeTracker } from '../support/tracking.ts';

const clock = manualClock();
const provider = scriptedProvider();
let api: TestApi;
let page: LoggedIn;
let tracker: string;

beforeAll(async () => {
  api = await startApi({ clock, providers: [provider] });
  const key = await api.key();
  page = await loggedIn(api, await makeUser(api, key.partner_id));
  tracker = await makeTracker(api, key);
  provider.says('8.8.8.8', aCompany('Acme'));
  // Of the United States and of Germany.
  for (const ip of ['8.8.8.8', '5.9.7.4']) await collect(api, tracker, { ip });
  await api.runtime.evidence.flush();
  const { sessions } = await feed(api, key, `tracker_id=${tracker}`);
  const url = `/v1/sessions/${sessions[0]?.session_id}/reveal`;
  await api.inject(key, { method: 'POST', url, headers: { 'idempotency-key': crypto.randomUUID() } });
  await eventually(
    'the company is listed',
    async () => {
      await page.get('/sessions');
      return (await page.get('/companies')).body;
    },
    (body) => body.includes('1 company.'),
  );
});
afterAll(() => api.close());
// Past the second that pages are counted in.
beforeEach(() => clock.advance(1_000));

/** How many sessions the list has, and the body. */
const sessionsOf = async (query: string): Promise<[number, string]> => {
  const { body, statusCode } = await page.get(`/sessions?${query}`);
  expect(statusCode).toBe(200);
  return [body.split('name="session_id"').length - 1, body];
};

describe('the filters of the sessions', () => {
  it.each(['DE', 'de', 'Germany', ' germany ', 'GERMANY'])(
    'find the sessions of a country by code and by name: %s',
    async (country) => {
      const [found, body] = await sessionsOf(`country=${encodeURIComponent(country)}`);
      expect(found).toBe(1);
      expect(body).not.toContain('aria-invalid');
      expect(body).toContain(`value="${country.trim()}"`);
    },
  );

  it('find none of a country without sessions, and those of all without a country', async () => {
    expect((await sessionsOf('country=France'))[0]).toBe(0);
    expect((await sessionsOf('country='))[0]).toBe(2);
    expect((await sessionsOf('country=unknown'))[0]).toBe(0);
  });

  it.each([
    ['country=Atlantis', /name="country"[^>]*value="Atlantis"[^>]*aria-invalid="true"/],
    ['country=QQ', /name="country"[^>]*value="QQ"[^>]*aria-invalid="true"/],
    ['revealed=perhaps', /“perhaps”<\/summary>[\s\S]*“perhaps” is none of these/],
  ])('keep and mark what they do not understand, and find nothing: %s', async (query, marked) => {
    const [found, body] = await sessionsOf(query);
    expect([found, body]).toEqual([0, expect.stringMatching(marked)]);
    expect(body).toContain('so nothing is found.');
  });
});

describe('a period or a website that is not understood', () => {
  const WRONG = [
    ['period=fortnight', /“fortnight”<\/summary>[\s\S]*“fortnight” is none of these/],
    ['period=custom&from=2026-02-31&to=x', /“2026-02-31” to “x” is no period/],
  ] as const;
  const OF_WEBSITE = ['tracker_id=shop', /“shop”<\/summary>[\s\S]*“shop” is none of these/] as const;

  it.each([...WRONG, OF_WEBSITE])('stays, is marked and finds nothing: %s', async (query, marked) => {
    const found = {
      '/sessions': 'name="session_id"',
      '/companies': '>Acme<',
      '': '>Acme<',
      '/usage': '>By website<',
    };
    for (const [path, row] of Object.entries(found)) {
      clock.advance(1_000);
      expect((await page.get(path)).body, path).toContain(row);
      const { body, statusCode } = await page.get(`${path}?${query}`);
      expect([statusCode, body.includes(row), body], path).toEqual([
        200,
        false,
        expect.stringMatching(marked),
      ]);
    }
    const lines = async (path: string) => (await page.get(path)).body.trim().split('\r\n').length;
    clock.advance(1_000);
    expect(await lines('/companies.csv')).toBe(2);
    expect(await lines(`/companies.csv?${query}`)).toBe(1);
  });

  it.each(WRONG)('finds no change, no lookup and no usage of a website: %s', async (query, marked) => {
    for (const path of ['/activity', `/trackers/${tracker}`]) {
      clock.advance(1_000);
      expect((await page.get(path)).body, path).toMatch(/Website added|Sessions a day/);
      const { body, statusCode } = await page.get(`${path}?${query}`);
      expect([statusCode, body], path).toEqual([200, expect.stringMatching(marked)]);
      expect(body, path).not.toMatch(/Website added|Sessions a day/);
    }
    for (const name of ['activity', 'usage']) {
      const { body } = await page.get(`/${name}.csv?${query}`);
      expect(body.trim().split('\r\n')).toHaveLength(1);
    }
  });

  it('names a website that is deleted, whose sessions stay', async () => {
    const deleted = '2b6d6a5e-7d0f-4f0e-8a5a-3b1e0f1c2d3e';
    const [, body] = await sessionsOf(`tracker_id=${deleted}`);
    expect(body).toContain('Deleted website</summary>');
    expect(body).toContain(`tracker_id=${deleted}" aria-current="true"`);
  });
});

it.each(['actor=nobody', 'subject=planet'])(
  'the list of changes keeps and marks %s and finds nothing',
  async (query) => {
    const { body } = await page.get(`/activity?${query}`);
    const [name, value] = query.split('=');
    expect(body).toContain(`“${value}”</summary>`);
    expect(body).toContain(`“${value}” is none of these, so nothing is found.`);
    expect(body).toContain(`?${name}=`);
    expect(body).not.toContain('Website added');
    expect((await page.get(`/activity.csv?${query}`)).body.trim().split('\r\n')).toHaveLength(1);
  },
);

describe('a country', () => {
  it.each([
    ['Germany', 'DE'],
    ['uk', 'GB'],
    ['United Kingdom', 'GB'],
    ['usa', 'US'],
    ["Cote d'Ivoire", 'CI'],
    ['Turkey', 'TR'],
    ['Hong Kong', 'HK'],
    ['kosovo', 'XK'],
  ])('is known by the name %s', (name, code) => {
    expect(countryCode(name)).toBe(code);
  });

  it.each(['', 'ZZ', 'EU', 'Unknown Region', 'YU', 'x', '1', 'Germany!!1x'])('is not known by %j', (name) => {
    expect(countryCode(name)).toBe(null);
  });

  it('has a name', () => {
    expect(['DE', 'XK', 'QQ', null].map(countryName)).toEqual(['Germany', 'Kosovo', 'QQ', 'unknown']);
  });
});
