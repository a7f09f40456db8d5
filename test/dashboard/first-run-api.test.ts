import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ownContext } from '../../commands/handle.ts';
import { revokeKey, setCeilings } from '../../commands/partners/manage-partner.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { type LoggedIn, loggedIn, makeUser } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';
import { collect } from '../support/tracking.ts';

const clock = manualClock();
const provider = scriptedProvider();
let api: TestApi;
let key: Key;
let page: LoggedIn;
beforeAll(async () => {
  api = await startApi({ clock, providers: [provider] });
});
afterAll(() => api.close());
/** An account without anything. */
beforeEach(async () => {
  clock.advance(1_000);
  key = await api.key();
  await revokeKey(api.runtime.store, key, ownContext(clock));
  await api.caughtUp();
  page = await loggedIn(api, await makeUser(api, key.partner_id));
});

const home = async (): Promise<string> => (await page.get('')).body;

describe('Home', () => {
  it('has one step at a time and no figures before there is something, up to the first visit', async () => {
    const empty = await home();
    expect(empty).not.toMatch(/class="tiles"|<figure|class="filter"/);
    expect(empty.match(/aria-current="step"/g)).toHaveLength(1);
    expect(empty).toMatch(/aria-current="step"><strong>See who visits your website<\/strong><form/);
    expect(empty).not.toContain('/dashboard/lookup?ip=');

    const added = await page.send('/trackers', { from: 'start', origins: 'www.shop.example' });
    expect([added.statusCode, added.headers.location]).toEqual([303, '/dashboard']);
    const waiting = await home();
    expect(waiting).toContain('Put this into every page of “www.shop.example”');
    expect(waiting).toMatch(/id="start" data-live/);
    expect(waiting).not.toMatch(/class="tiles"|<figure/);
    const tracker = /tracker_id=([\w-]{36})/.exec(waiting)?.[1] ?? '';

    const origin = 'https://www.shop.example';
    expect((await collect(api, tracker, { headers: { origin } })).statusCode).toBe(204);
    await api.caughtUp();
    const visited = await home();
    expect(visited).toContain('See its visits');
    expect(visited).toMatch(/aria-current="step"><strong>Look up an address/);
    expect(visited).toMatch(/class="tiles"/);
    expect((await page.get('/trackers')).body).toContain('>www.shop.example</a>');
  });

  it('says what will show to a user who adds nothing', async () => {
    const reader = await loggedIn(api, await makeUser(api, key.partner_id, { role: 'read-only' }));
    const { body } = await reader.get('');
    expect(body).toContain('No visits yet');
    expect(body).not.toMatch(/class="tiles"|<figure|Get started/);
  });
});

describe('the first lookup', () => {
  it('makes a key that nobody sees, by one button of an owner', async () => {
    provider.says('8.8.8.8', aCompany('Acme'));
    expect((await page.get('/lookup?ip=8.8.8.8')).body).toMatch(
      /action="\/dashboard\/lookup\/first-key"[\s\S]*value="8\.8\.8\.8"[\s\S]*Create a key and look up/,
    );
    const made = await page.send('/lookup/first-key', { ip: '8.8.8.8', proof: '' });
    expect(made.statusCode).toBe(303);
    const shown = String(made.headers.location).replace('/dashboard', '');
    await eventually(
      'the answer is there',
      async () => (await page.get(shown)).body,
      (body) => body.includes('Acme'),
    );
    const again = await page.send('/lookup/first-key', { ip: '1.1.1.1' });
    expect(again.statusCode).toBe(303);
    const keys = (await page.get('/keys')).body;
    expect(keys.match(/>Dashboard<\/a>/g)).toHaveLength(1);
    expect(keys).not.toMatch(/dp_\w{20}/);
  });

  it("makes the key within the account's ceilings, and one of two presses at once", async () => {
    const ceilings = { requests_per_second: 10, new_enrichments_per_day: 5, pending_enrichments: 3 };
    await setCeilings(api.runtime.store, { partner_id: key.partner_id, ceilings }, ownContext(clock));
    await api.caughtUp();
    const press = () => page.send('/lookup/first-key', { ip: '8.8.8.8' });
    const pressed = await Promise.all([press(), press()]);
    expect(pressed.map(({ statusCode }) => statusCode)).toEqual([303, 303]);
    expect((await page.get('/keys')).body.match(/>Dashboard<\/a>/g)).toHaveLength(1);
  });

  it('makes no key of a user who may not', async () => {
    const member = await loggedIn(api, await makeUser(api, key.partner_id, { role: 'member' }));
    expect((await member.get('/lookup')).body).not.toContain('first-key');
    expect((await member.send('/lookup/first-key', { ip: '8.8.8.8' })).statusCode).toBe(403);
    expect((await page.get('/lookup')).body).toContain('No key yet');
  });
});
