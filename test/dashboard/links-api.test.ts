import { randomUUID } from 'node:crypto';
import type { LightMyRequestResponse } from 'fastify';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { documentedRoutes } from '../../bin/api.ts';
import { openApiContext } from '../../bin/api-context.ts';
import { buildDashboard } from '../../bin/dashboard.ts';
import { createRateLimiter } from '../../platform/limits/rate-limit.ts';
import type { GuardedRoute } from '../../web/dashboard/routes.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { type LoggedIn, loggedIn, makeUser, type TestUser } from '../support/dashboard.ts';
import { collect, feed, makeTracker } from '../support/tracking.ts';

const clock = manualClock();
let api: TestApi;
let key: Key;
let user: TestUser;
let page: LoggedIn;
/** What stands for the parameters of a path. */
let ids: Readonly<Record<string, string>>;
let pages: readonly string[];
let actions: readonly string[];
/** The actions that everybody may take. */
let own: readonly string[];

beforeAll(async () => {
  api = await startApi({ clock });
  key = await api.key();
  user = await makeUser(api, key.partner_id);
  page = await loggedIn(api, user);
  const tracker_id = await makeTracker(api, key);
  await collect(api, tracker_id, { ip: '8.8.8.8' });
  const session_id = (await feed(api, key)).sessions.at(-1)?.session_id as string;
  const post = async (url: string, payload: object | undefined, headers = {}) =>
    (await api.inject(key, { method: 'POST', url, headers, ...(payload && { payload }) })).json();
  const headers = { 'idempotency-key': randomUUID() };
  const { reveal_id } = await post(`/v1/sessions/${session_id}/reveal`, undefined, headers);
  const events = ['session.created', 'reveal.completed'];
  const webhook = await post('/v1/webhooks', { name: 'a', url: 'https://hooks.example/a', events });
  const { delivery_id } = await post(`/v1/webhooks/${webhook.id}/test`, undefined);
  const domain = await post(`/v1/trackers/${tracker_id}/domains`, { hostname: 'visits.customer.example' });
  ids = {
    ...{ tracker_id, session_id, reveal_id, webhook_id: webhook.id, delivery_id, domain_id: domain.id },
    ...{ key_id: key.key_id, user_id: user.user_id, recovery_id: randomUUID(), month: '2026-11' },
  };
  const limiter = createRateLimiter({ ...api.runtime, alone: () => true });
  const context = await openApiContext(api.runtime, limiter, 'http://doorplate.test', undefined);
  const dashboard = buildDashboard(context, { routes: [], admit: () => null });
  actions = dashboard.routes
    .filter((route) => 'needs' in route && route.method === 'POST')
    .map(({ path }) => path);
  const guarded = dashboard.routes.filter((route): route is GuardedRoute => 'needs' in route);
  own = guarded
    .filter(({ method, needs }) => method === 'POST' && needs === 'read-only')
    .map(({ path }) => path);
  pages = dashboard.routes
    .filter(({ method, path }) => method === 'GET' && !path.includes('*'))
    .map(({ path }) => path);
  await dashboard.close();
  await context.erasures.close();
});
afterAll(() => api.close());
// Past the second that pages and calls are counted in.
beforeEach(() => clock.advance(1_000));

const UUID = randomUUID();
const INSTANT = '2026-11-02T10:00:00.000Z';
/** Texts that PostgreSQL refuses as a date, a time, a number, an id or a text, and what an id begins with. */
const HOSTILE = [
  ...['a\0b', `${UUID}\0`, 'x'.repeat(600), '9'.repeat(30)],
  ...['0000-01', '9999-12', '0000-01-01', '0001-01-01', '9999-12-31', '2026-02-30'],
  ...['0000-01-01T10:00:00.000Z', '2026-02-30T10:00:00.000Z', '9999-12-31T23:59:59.999Z'],
  ...[`${INSTANT}_99999999999999999999`, '2026-02-30T10:00:00.000Z_1', '0000-01-01T10:00:00.000Z_1'],
  ...[`${INSTANT},999999999999999999`, '2026-02-30T10:00:00.000Z,1', '9999-12-31T23:59:59.999Z_1'],
  ...['0000-01-01T00:00', 'key:\0', `user:${UUID}\0`],
];

/** Parameters of queries that a page or a route may refuse, so that it does not look at the others. */
const ALONE = ['before', 'cursor', 'month', 'since', 'tracker_id'];
const TOGETHER = [
  'from',
  'to',
  'until',
  'after',
  'id',
  'key_id',
  'ip',
  'q',
  'name',
  'company',
  'country',
  'label',
]
  .concat([
    'actor',
    'subject',
    'span',
    'origin',
    'status',
    'type',
    'session_id',
    'back',
    'said',
    'next',
    'revealed',
  ])
  .concat(ALONE);

const FIELDS = [
  'login_id',
  'invitation_id',
  'time_zone',
  'role',
  'note',
  'name',
  'origins',
  'customer_reference',
]
  .concat([
    'key_id',
    'ip',
    'hostname',
    'url',
    'events',
    'tracker_id',
    'session_id',
    'idempotency_key',
    'since',
    'expires_at',
  ])
  .concat(['proposal', 'code', 'back', 'current', 'requests_per_second', 'event', 'type', 'required']);

const filled = (path: string, given: Readonly<Record<string, string>> = {}): string =>
  path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(given[name] ?? ids[name] ?? 'x'));

const parametersOf = (path: string): string[] => [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => name);

/** Each parameter of a path, and of a query, with each of the texts. */
function* linksTo(path: string): Generator<string> {
  for (const text of HOSTILE) {
    for (const name of parametersOf(path)) yield filled(path, { [name]: text });
    for (const name of ALONE) yield `${filled(path)}?${new URLSearchParams({ [name]: text })}`;
    yield `${filled(path)}?${new URLSearchParams(Object.fromEntries(TOGETHER.map((name) => [name, text])))}`;
    for (const other of text.length === 10 ? ['0001-12-31', '0000-12-31', '9999-12-31'] : [])
      yield `${filled(path)}?${new URLSearchParams({ period: 'custom', from: text, to: other })}`;
  }
}

/** The links that fail. */
async function failing(
  paths: readonly string[],
  open: (link: string) => Promise<LightMyRequestResponse>,
): Promise<string[]> {
  const failed = [];
  for (const path of paths) {
    // A login ends in time.
    page = await loggedIn(api, user);
    for (const link of linksTo(path)) {
      clock.advance(1_000);
      const { statusCode, headers } = await open(link);
      if (statusCode >= 500 || headers.location?.startsWith('/dashboard/login?'))
        failed.push(`${statusCode} ${link}`);
    }
  }
  return failed;
}

describe('no link makes the service fail', () => {
  it('to a page of the dashboard', async () => {
    expect(pages.length).toBeGreaterThan(30);
    const failed = await failing(pages, (link) => page.get(link.slice('/dashboard'.length)));
    expect(failed).toEqual([]);
  }, 300_000);

  it('of a form', async () => {
    const failed = [];
    for (const path of actions) {
      for (const text of ['a\0b', `${UUID}\0`, '0000-01-01T00:00']) {
        page = await loggedIn(api, user);
        const form = Object.fromEntries(FIELDS.map((name) => [name, text]));
        for (const name of [null, ...parametersOf(path)]) {
          clock.advance(2_000);
          const link = filled(path, name === null ? {} : { [name]: text });
          const { statusCode } = await page.send(link.slice('/dashboard'.length), form);
          if (statusCode >= 500) failed.push(`${statusCode} ${link}`);
        }
      }
    }
    expect(actions.length).toBeGreaterThan(30);
    expect(failed).toEqual([]);
  }, 300_000);

  it('to the API', async () => {
    const paths = documentedRoutes().filter(({ method, access }) => method === 'GET' && access !== 'public');
    const failed = await failing(
      paths.map(({ path }) => path),
      (url) => api.inject(key, { method: 'GET', url }),
    );
    expect(failed).toEqual([]);
  }, 300_000);
});

beforeEach(async () => {
  page = await loggedIn(api, user);
});

it('no page offers a read-only user a form that needs another role', async () => {
  const reader = await loggedIn(api, await makeUser(api, key.partner_id, { role: 'read-only' }));
  const query = new URLSearchParams({
    origin: 'https://www.example.com',
    since: '2026-11-02',
    ip: '8.8.8.8',
  });
  for (const path of pages) {
    clock.advance(1_000);
    const { body } = await reader.get(`${filled(path)}?${query}`.slice('/dashboard'.length));
    for (const [, action = ''] of body.matchAll(/<form method="post" action="([^"]*)"/g))
      expect([...own, '/dashboard/login'], `a form of ${path}`).toContain(action);
  }
});

it.each(['0000-01', '2026-13', 'november'])('a bill of the month %s is refused in words', async (month) => {
  const bill = await page.get(`/billing/${month}`);
  expect([bill.statusCode, bill.body.includes('There is no such month')]).toEqual([404, true]);
  expect((await page.get(`/billing/${month}/ledger.jsonl`)).statusCode).toBe(400);
});

it('a period before the first year is refused in words', async () => {
  const { statusCode, body } = await page.get('/usage?period=custom&from=0000-01-01&to=0000-12-31');
  expect([statusCode, body.includes('is no period of at most')]).toEqual([200, true]);
});
