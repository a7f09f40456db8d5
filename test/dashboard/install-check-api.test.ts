import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { type LoggedIn, loggedIn, makeUser } from '../support/dashboard.ts';
import { collect, makeTracker, PAGE } from '../support/tracking.ts';

const clock = manualClock();
let api: TestApi;
let key: Key;
let page: LoggedIn;
let stranger: LoggedIn;
beforeAll(async () => {
  api = await startApi({ clock });
  key = await api.key();
  page = await loggedIn(api, await makeUser(api, key.partner_id));
  stranger = await loggedIn(api, await makeUser(api, (await api.key()).partner_id));
});
afterAll(() => api.close());
beforeEach(() => clock.advance(2_000));

const shown = async (tracker: string) => {
  await api.runtime.evidence.flush();
  await api.caughtUp();
  return (await page.get(`/trackers/${tracker}/install`)).body;
};
const STAGING = 'https://staging.example.com';

it('names wrong origins, and adds one after a question, for its own partner alone', async () => {
  const tracker = await makeTracker(api, key);
  const wrong = [
    STAGING,
    'http://plain.example',
    'http://localhost:4000',
    PAGE.replace('https:', 'http:'),
    'null',
    'https://*.evil.example',
    '"><script>alert(1)</script>',
  ];
  for (const origin of wrong) await collect(api, tracker, { headers: { origin } });
  const body = await shown(tracker);
  expect(body).toContain(`Visits arrive from origins that are not allowed: `);
  expect(body).toContain('The origin is not one of the website’s');
  expect(body).not.toContain('<script>alert');
  const links = [...body.matchAll(/href="\/dashboard(\/trackers\/[^"]*\/origin\?[^"]*)"/g)].map(
    ([, link]) => link,
  );
  const linkOf = (origin: string) => `/trackers/${tracker}/origin?origin=${encodeURIComponent(origin)}`;
  expect(links.toSorted()).toEqual(
    [STAGING, 'https://plain.example', 'http://localhost:4000'].map(linkOf).toSorted(),
  );
  expect(body.match(/Pages over http are not measured/g)).toHaveLength(2);
  expect(body).toContain('Add https://plain.example…');
  expect(body.match(/This is no website’s origin/g)).toHaveLength(3);
  const link = linkOf(STAGING);
  const question = (await page.get(link)).body;
  expect(question).toContain(`Add ${STAGING} to`);
  const field = (name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(question)?.[1] ?? '';
  const form = {
    name: field('name'),
    origins: field('origins'),
    customer_reference: field('customer_reference'),
  };
  expect(form.origins).toBe(`${PAGE} ${STAGING}`);
  const added = await page.send(`/trackers/${tracker}/change`, form);
  expect(added.headers.location).toBe(`/dashboard/trackers/${tracker}`);
  expect((await collect(api, tracker, { headers: { origin: STAGING } })).statusCode).toBe(204);
  const reader = await loggedIn(api, await makeUser(api, key.partner_id, { role: 'read-only' }));
  const offered = await reader.get(link);
  expect([offered.statusCode, offered.body.includes('Add the origin')]).toEqual([403, false]);
  // It is there by now.
  expect((await page.get(link)).headers.location).toBe(`/dashboard/trackers/${tracker}`);
  expect((await stranger.get(link)).headers.location).toBe('/dashboard/trackers');
  expect((await stranger.get(`/trackers/${tracker}`)).statusCode).toBe(404);
});

it('waits for what the service saw of the first visit, and finds nothing wrong with it', async () => {
  const tracker = await makeTracker(api, key);
  const shownNow = async () => (await page.get(`/trackers/${tracker}`)).body;
  expect(await shownNow()).toContain('Waiting for the first visit');
  expect(await shownNow()).toContain('No page has loaded the script yet.');
  await collect(api, tracker);
  await api.caughtUp();
  // The evidence is written up to ten seconds later.
  const before = await shownNow();
  expect(before).toMatch(/class="tiles"/);
  expect((await page.get(`/trackers/${tracker}/install`)).body).toContain(
    'A page of the website has just been seen',
  );
  expect(before).not.toContain('No visit');
  expect(before).not.toContain('though visits came before');
  expect(await shown(tracker)).toContain('Receiving visits:');
});

it('names websites with a broken pixel on Home and in the list, and no others', async () => {
  const own = await api.key();
  const owner = await loggedIn(api, await makeUser(api, own.partner_id));
  const [broken, works, silent] = [
    await makeTracker(api, own),
    await makeTracker(api, own),
    await makeTracker(api, own),
  ];
  await collect(api, broken, { headers: { origin: STAGING } });
  await collect(api, works, { headers: { origin: STAGING } });
  await collect(api, works);
  await api.runtime.evidence.flush();
  await api.caughtUp();
  clock.advance(20_000);
  const seen = `Visits arrive from origins that are not allowed: ${STAGING}.`;
  const home = (await owner.get('')).body;
  expect(home.split(seen)).toHaveLength(2);
  expect(home).toContain(`href="/dashboard/trackers/${broken}"`);
  const list = (await owner.get('/trackers')).body;
  const rowOf = (tracker: string) =>
    list.split('<tr>').find((row) => row.includes(`/dashboard/trackers/${tracker}`));
  expect(rowOf(broken)).toContain(seen);
  expect(rowOf(works)).toContain('Receiving');
  expect(rowOf(silent)).toContain('Waiting for visits');
});
