import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { searchKey } from '../../domain/kernel/text.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { type LoggedIn, loggedIn, makeUser } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';
import { collect, feed, makeTracker } from '../support/tracking.ts';

const clock = manualClock();
const provider = scriptedProvider();
let api: TestApi;
let key: Key;
let page: LoggedIn;

beforeAll(async () => {
  api = await startApi({ clock, providers: [provider] });
  key = await api.key();
  page = await loggedIn(api, await makeUser(api, key.partner_id));
});
afterAll(() => api.close());

/** Reveals a session of a company, and waits until lists have it. */
const reveal = async (
  tracker: string,
  ip: string,
  name: string,
  custom: object = {},
  more: object = {},
): Promise<string> => {
  provider.says(ip, aCompany(name, more));
  await collect(api, tracker, { ip, body: { custom } });
  const { sessions } = await feed(api, key, `tracker_id=${tracker}&limit=100`);
  const session = String(sessions.at(-1)?.session_id);
  const headers = { 'idempotency-key': randomUUID() };
  await eventually(
    'the reveal is complete',
    () => api.inject(key, { method: 'POST', url: `/v1/sessions/${session}/reveal`, headers }),
    ({ statusCode }) => statusCode === 200,
  );
  clock.advance(1_000);
  // Waits for what was written before it.
  await page.get('/sessions');
  return session;
};

const rowsOf = (body: string): string[] =>
  [...body.matchAll(/href="\/dashboard\/company\?name=([^"&]+)/g)].map(([, name = '']) =>
    decodeURIComponent(name.replaceAll('+', ' ')),
  );

it('lists a company with two spellings of its name once, and finds it by either', async () => {
  const tracker = await makeTracker(api, key);
  await reveal(tracker, '5.9.1.1', 'İstanbul Σίσυφος Mu\u0308ller Straße');
  await reveal(tracker, '5.9.1.2', 'ISTANBUL ΣΊΣΥΦΟΣ MÜLLER STRASSE', { stadt: 'Mu\u0308nchen İzmir' });
  const scope = `tracker_id=${tracker}`;
  expect(rowsOf((await page.get(`/companies?${scope}`)).body)).toEqual(['ISTANBUL ΣΊΣΥΦΟΣ MÜLLER STRASSE']);
  for (const text of ['istanbul', 'σίσυφοσ', 'MÜLLER', 'mu\u0308ller', 'strasse']) {
    const wanted = `${scope}&company=${encodeURIComponent(text)}`;
    expect((await page.get(`/companies?${wanted}`)).body, text).toContain('1 company.');
    expect((await page.get(`/sessions?${wanted}`)).body, text).toContain('2 sessions.');
  }
  expect((await page.get(`/companies?${scope}&company=Muller`)).body).toContain('No companies match');
  for (const label of ['münchen', 'izmir', 'STADT: MÜNCHEN'])
    expect((await page.get(`/sessions?${scope}&label=${encodeURIComponent(label)}`)).body, label).toContain(
      '1 session.',
    );
  const own = await page.get(`/company?name=${encodeURIComponent('istanbul σίσυφος müller strasse')}`);
  expect(own.statusCode).toBe(200);
});

it('finds a company that an earlier version has completed by its name in lower case', async () => {
  const tracker = await makeTracker(api, key);
  const session = await reveal(tracker, '5.9.1.3', 'Older ÄG');
  await api.sql.query(
    `update read.reveal set company_search = null, company_key = md5(lower('Older ÄG')) where session_id = $1`,
    [session],
  );
  expect((await page.get(`/sessions?tracker_id=${tracker}&company=older+äg`)).body).toContain('1 session.');
  expect(rowsOf((await page.get(`/companies?tracker_id=${tracker}&company=OLDER`)).body)).toEqual([
    'Older ÄG',
  ]);
  expect((await page.get('/company?name=Older+%C3%84G')).statusCode).toBe(200);
});

it('has one line of CSV for each company, whose formulas are defused wherever the name is broken', async () => {
  const tracker = await makeTracker(api, key);
  await reveal(tracker, '5.9.1.4', 'Broken\n=cmd()\r@x\u2028y');
  await reveal(tracker, '5.9.1.5', '＝1+1');
  await reveal(tracker, '5.9.1.6', '\r\n=cmd()');
  const { body } = await page.get(`/companies.csv?tracker_id=${tracker}`);
  const names = body.split('\r\n').map((line) => line.split(',', 1)[0]);
  expect(names).toEqual(['\uFEFFcompany', "' =cmd()", "'＝1+1", 'Broken =cmd() @x y', '']);
});

it('has a file that Excel reads, named for the website, with the city and the region', async () => {
  const tracker = await makeTracker(api, key, { name: 'Shop & more' });
  const company = { name: 'Zürich AG', city: 'Zürich', region: 'ZH' };
  await reveal(tracker, '5.9.1.7', 'Zürich AG', {}, { company });
  const { body, headers } = await page.get(`/companies.csv?tracker_id=${tracker}`);
  const [heads = '', row = ''] = body.split('\r\n').map((line) => line.split(','));
  expect(heads.slice(-2)).toEqual(['city', 'region']);
  expect(row.slice(-3)).toEqual(['Shop & more', 'Zürich', 'ZH']);
  expect(headers['content-disposition']).toMatch(/doorplate-companies-shop-more-[\d-]{21}\.csv/);
});

it('says how many sessions of the period are not revealed', async () => {
  const tracker = await makeTracker(api, key);
  await reveal(tracker, '5.9.1.8', 'Acme');
  expect((await page.get(`/companies?tracker_id=${tracker}`)).body).not.toContain('not revealed');
  for (const ip of ['5.9.1.9', '5.9.1.10']) await collect(api, tracker, { ip });
  await api.caughtUp();
  const { body } = await page.get(`/companies?tracker_id=${tracker}`);
  expect(body).toContain('2 sessions of the period are not revealed.');
  expect(body).toContain(`href="/dashboard/sessions?tracker_id=${tracker}&amp;revealed=no"`);
});

/** Writes a revealed session into the read models. */
const addReveal = async (tracker: string, name: string, began: string, completed: string, stream: string) => {
  const { rows } = await api.sql.query(
    `insert into read.session (session_id, partner_id, tracker_id, sealed, first_seen_at, last_seen_at, expires_at, position,
       stream, last_revision, last_position)
     values (gen_random_uuid(), $1, $2, '', $3, $3, $3::timestamptz + interval '30 days', 1, $4, 0, 1) returning session_id`,
    [key.partner_id, tracker, began, stream],
  );
  await api.sql.query(
    `insert into read.reveal (reveal_id, partner_id, session_id, tracker_id, key_id, created_at, completed_at, expires_at, billable,
       result, company_search, company_key, last_revision, last_position)
     values (gen_random_uuid(), $1, $2, $3, 'k', $4, $5, $4::timestamptz + interval '30 days', true, $6, $7, md5($7), 1, 1)`,
    [
      ...[key.partner_id, rows[0].session_id, tracker, began, completed],
      ...[JSON.stringify({ match_type: 'company', company: { name } }), searchKey(name)],
    ],
  );
};

it('shows each company on one page although one is seen again between two pages', async () => {
  const tracker = await makeTracker(api, key);
  const names = Array.from({ length: 150 }, (_, nth) => `Company ${String(nth).padStart(3, '0')}`);
  for (const [nth, name] of names.entries()) {
    const at = new Date(clock.now() - nth * 1_000).toISOString();
    await addReveal(tracker, name, at, at, `tab-${nth}`);
  }
  const first = (await page.get(`/companies?tracker_id=${tracker}`)).body;
  expect(rowsOf(first)).toEqual(names.slice(0, 100));
  clock.advance(60_000);
  const now = new Date(clock.now()).toISOString();
  for (const nth of [120, 50])
    await api.sql.query('update read.session set last_seen_at = $2 where stream = $1', [`tab-${nth}`, now]);
  // Company 130 has a newer session, and company 20 an older one, both revealed only now.
  await addReveal(tracker, 'Company 130', now, now, 'later-130');
  await addReveal(tracker, 'Company 020', new Date(clock.now() - 200_000).toISOString(), now, 'later-20');
  const next = /href="\/dashboard(\/companies\?[^"]*after=[^"]+)"/.exec(first)?.[1]?.replaceAll('&amp;', '&');
  const second = (await page.get(String(next))).body;
  expect(rowsOf(second)).toEqual(names.slice(100));
  expect(second).toContain('101 to 150 of 150 companies.');
  const again = rowsOf((await page.get(`/companies?tracker_id=${tracker}`)).body);
  expect(again.slice(0, 2)).toEqual(['Company 130', 'Company 000']);
  expect(rowsOf((await page.get(`/companies?tracker_id=${tracker}&after=100`)).body)).toHaveLength(100);
});
