import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { type LoggedIn, loggedIn, makeUser, type TestUser } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';
import { aCompany, scriptedProvider } from '../support/providers.ts';
import { collect, feed, makeTracker } from '../support/tracking.ts';

const clock = manualClock();
const provider = scriptedProvider();
let api: TestApi;
let key: Key;
let user: TestUser;
let page: LoggedIn;
let tracker: string;

/** The rows of a page, as texts: what, of, by, details. */
const rowsOf = async (query = '') => {
  const { body, statusCode } = await page.get(`/activity${query}`);
  expect(statusCode, body).toBe(200);
  expect(body).toContain('<h1>Activity</h1>');
  const [, table = ''] = /<tbody>(.*?)<\/tbody>/s.exec(body) ?? [];
  return [...table.matchAll(/<tr>(.*?)<\/tr>/gs)].map(([, row = '']) =>
    [...row.matchAll(/<td[^>]*>(.*?)<\/td>/gs)]
      .map(([, cell = '']) => cell.replace(/<[^>]*>/g, '').trim())
      .slice(0, 4),
  );
};

beforeAll(async () => {
  api = await startApi({ clock, providers: [provider] });
  key = await api.key();
  user = await makeUser(api, key.partner_id, { name: '=1+1@example.com' });
  page = await loggedIn(api, user);
  clock.advance(1_000);
  tracker = await makeTracker(api, key);
  clock.advance(1_000);
  await page.send(`/trackers/${tracker}/disable`);
  clock.advance(1_000);
  await page.send(`/trackers/${tracker}/enable`);
});
afterAll(() => api.close());

it('lists who did what, the latest first', async () => {
  const by = `${user.name} (user)`;
  expect(await rowsOf()).toEqual([
    ['Website enabled', 'a site', by, '–'],
    ['Website disabled', 'a site', by, '–'],
    ['Website added', 'a site', expect.stringMatching(/\(key\)$/), '1 website'],
    ['User created', user.name, 'The operator of the service', 'owner'],
    [
      'Key created',
      expect.any(String),
      'The operator of the service',
      expect.stringMatching(/requests a second/),
    ],
    ['Account created', '–', 'The operator of the service', '–'],
  ]);
});

it('is filtered by actor, subject and period, whatever else the address holds', async () => {
  const names = async (query: string) => (await rowsOf(query)).map(([what]) => what);
  expect(await names(`?actor=user:${user.user_id}`)).toEqual(['Website enabled', 'Website disabled']);
  expect(await names(`?actor=key:${key.key_id}&subject=tracker`)).toEqual(['Website added']);
  expect(await names('?subject=key')).toEqual(['Key created']);
  expect(await names('?actor=operator:&subject=user')).toEqual(['User created']);
  expect(await names('?period=custom&from=2020-01-01&to=2020-01-31')).toEqual([]);
  expect(await names('?actor=user:nobody&subject=nothing')).toEqual([]);
  expect(await names('?before=x')).toHaveLength(6);
  expect(
    await names(`?before=${encodeURIComponent('2026-01-01T00:00:00.000Z_9999999999999999999')}`),
  ).toHaveLength(6);
  expect(await names(`?before=${encodeURIComponent('2026-13-01T00:00:00.000Z_1')}`)).toHaveLength(6);
});

it('shows nothing of another partner', async () => {
  const other = await api.key();
  const stranger = await loggedIn(api, await makeUser(api, other.partner_id));
  const { body } = await stranger.get(`/activity?actor=user:${user.user_id}`);
  expect(body).toContain('No changes match');
  expect(body).not.toContain('a site');
});

it('is a file of CSV with the filter of the page, whose formulas are defused', async () => {
  const { body, headers } = await page.get('/activity.csv?subject=user');
  expect(headers['content-type']).toBe('text/csv; charset=utf-8');
  expect(body.split('\r\n').slice(0, 2)).toEqual([
    '\uFEFFat,action,subject_kind,subject_id,subject,actor_kind,actor_id,actor,details',
    expect.stringMatching(
      new RegExp(`user.created,user,${user.user_id},'=1\\+1@example.com,operator,,,owner$`),
    ),
  ]);
});

it('has reveals of users with their units, and goes on page by page', async () => {
  provider.says('8.8.8.8', aCompany('Acme'));
  await collect(api, tracker, { ip: '8.8.8.8' });
  const session = (await feed(api, key)).sessions.at(-1)?.session_id;
  const question = (await page.get(`/sessions/${session}/reveal`)).body;
  const idempotency = /name="idempotency_key" value="([^"]+)"/.exec(question)?.[1] ?? '';
  const sent = await page.send(`/sessions/${session}/reveal`, { idempotency_key: idempotency });
  const receipt = /reveals\/([\w-]+)/.exec(String(sent.headers.location))?.[1];
  await eventually(
    'the reveal is complete',
    () => api.inject(key, { method: 'GET', url: `/v1/reveals/${receipt}` }),
    ({ statusCode }) => statusCode === 200,
  );
  await eventually(
    'the reveal is billed',
    async () => (await api.sql.query(`select from read.activity where subject_kind = 'reveal'`)).rowCount,
  );
  clock.advance(2_000);
  expect(await rowsOf('?subject=reveal')).toEqual([
    ['Session revealed', receipt?.slice(0, 8), `${user.name} (user)`, '1 unit'],
  ]);
  await api.sql.query(
    `insert into read.activity
     select 1000000 + n, $1, $2::timestamptz - n * interval '1 minute', 'service', '', 'domain.failed', 'domain', 'd', 'n' || n
     from generate_series(1, 70) n`,
    [key.partner_id, new Date(clock.now())],
  );
  const first = (await page.get('/activity?subject=domain')).body;
  expect(first).toContain('50 changes, and there are older ones.');
  const next =
    /href="\/dashboard(\/activity\?[^"]*before=[^"]*)"/.exec(first)?.[1]?.replaceAll('&amp;', '&') ?? '';
  const second = (await page.get(next)).body;
  expect(second).toContain('20 changes.');
  expect(second).toContain('>n51<');
});

it('ends a file of ten thousand changes with a row that says so in the column of the details', async () => {
  await api.sql.query(
    `insert into read.activity
     select position + n, partner_id, at, actor_kind, actor_id, action, subject_kind, subject_id, summary
     from (select * from read.activity where partner_id = $1 order by position desc limit 1) a, generate_series(1, 10000) n`,
    [key.partner_id],
  );
  const rows = (await page.get('/activity.csv')).body.split('\r\n');
  expect(rows).toHaveLength(10_003);
  expect(rows.at(-2)).toBe(',,,,,,,,"Older changes are left out: at most 10,000 a file."');
});
