import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ownContext } from '../../commands/handle.ts';
import { changePartner, revokeKey } from '../../commands/partners/manage-partner.ts';
import { DAY } from '../../domain/kernel/time.ts';
import { shellQuoted } from '../../http/contract/shell-text.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { browse, type LoggedIn, loggedIn, makeUser } from '../support/dashboard.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';

const IP = '8.8.8.8';
const clock = manualClock();
const provider = scriptedProvider();
let api: TestApi;
let key: Key;
let page: LoggedIn;

beforeAll(async () => {
  api = await startApi({ clock, providers: [provider] });
  provider.says(IP, aCompany('Acme'));
});
afterAll(() => api.close());
// Past the second that pages and calls are counted in.
beforeEach(async () => {
  clock.advance(1_000);
  key = await api.key();
  page = await loggedIn(api, await makeUser(api, key.partner_id));
});

const linkTo = (key_id: string, ip = IP) => `/lookup?${new URLSearchParams({ ip, key_id })}`;
const requests = async (): Promise<number> => {
  await api.caughtUp();
  const { rows } = await api.sql.query(
    `select coalesce(sum(requests), 0)::int as requests from read.usage_hour join read.api_key using (key_id)
     where partner_id = $1`,
    [key.partner_id],
  );
  return rows[0].requests;
};

describe('a lookup from a page', () => {
  it('counts as a request of the key that is named', async () => {
    expect((await page.get(linkTo(key.key_id))).body).toContain('Not looked up yet');
    expect(await requests()).toBe(1);
  });

  it.each([
    ['revoked', (of: Key) => revokeKey(api.runtime.store, of, ownContext(clock))],
    [
      'of a suspended partner',
      (of: Key) => changePartner(api.runtime.store, 'SuspendPartner', of.partner_id, ownContext(clock)),
    ],
    ['expired', async () => clock.advance(DAY)],
  ])('is made with no key that is %s, and with no other in its place', async (_why, end) => {
    const named = await api.key({ expires_at: new Date(clock.now() + DAY).toISOString() }, key.partner_id);
    await end(named);
    await api.caughtUp();
    page = await loggedIn(api, await makeUser(api, key.partner_id));
    const asked = await page.get(linkTo(named.key_id));
    expect([asked.statusCode, asked.body.includes('This key cannot be used')]).toEqual([409, true]);
    expect([403, 409]).toContain((await page.send('/lookup', { ip: IP, key_id: named.key_id })).statusCode);
    expect(await requests()).toBe(0);
  });

  it('is made with no key of another partner', async () => {
    const other = await api.key();
    expect((await page.get(linkTo(other.key_id))).statusCode).toBe(409);
    expect((await page.get(linkTo('a\0b'))).statusCode).toBe(409);
    expect(await requests()).toBe(0);
  });

  it.each(['cross-site', 'same-site'])('is not made by a link of another site (%s)', async (site) => {
    const open = (headers: Record<string, string>) =>
      browse(api, 'GET', `/dashboard${linkTo(key.key_id)}`, { cookie: page.cookie, headers });
    const led = await open({ 'sec-fetch-site': site });
    expect([led.statusCode, led.body.includes(`value="${IP}"`)]).toEqual([200, true]);
    expect(led.body).not.toContain('Not looked up yet');
    expect(await requests()).toBe(0);
    for (const own of ['same-origin', 'none']) await open({ 'sec-fetch-site': own });
    expect(await requests()).toBe(2);
  });
});

/** What a shell hands to a command. */
const wordsOf = (line: string): string[] =>
  execFileSync('sh', ['-c', `curl() { for word; do printf '%s\\0' "$word"; done; }; ${line}`], {
    encoding: 'utf8',
    env: { DOORPLATE_API_KEY: 'dp_x' },
  })
    .split('\0')
    .slice(0, -1);

const HOSTILE = [`1'; echo owned; '`, '$(id)', '`id`', '"\\', '\n; id', "''", '!!', '-d @/etc/passwd', ''];

describe('a line that is offered for copying', () => {
  it.each(HOSTILE)('hands %j to the command as it is', (text) => {
    expect(wordsOf(`curl ${shellQuoted(text)} end`)).toEqual([text, 'end']);
  });

  it.each(HOSTILE.filter((text) => text !== ''))('has the address of a link, %j, as one word', async (ip) => {
    const { body } = await page.get(`/lookup?${new URLSearchParams({ ip })}`);
    const [, shown = ''] = /aria-label="curl command"><code>([^<]+)</.exec(body) ?? [];
    const line = shown
      .replaceAll('&#39;', "'")
      .replaceAll('&quot;', '"')
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>')
      .replaceAll('&amp;', '&');
    expect(wordsOf(line)).toEqual([
      '-H',
      'Authorization: Bearer dp_x',
      '-H',
      'Content-Type: application/json',
      '-d',
      JSON.stringify({ ip: ip.trim() }),
      'http://doorplate.test/v1/lookup',
    ]);
  });
});
