import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openApiContext } from '../../bin/api-context.ts';
import { buildDashboard } from '../../bin/dashboard.ts';
import { MINUTE } from '../../domain/kernel/time.ts';
import type { Role } from '../../domain/partners/events.ts';
import { createRateLimiter } from '../../platform/limits/rate-limit.ts';
import { createApi, type LoggedInUser } from '../../web/dashboard/api.ts';
import type { GuardedRoute } from '../../web/dashboard/routes.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { type LoggedIn, loggedIn, makeUser, PASSWORD, type TestUser } from '../support/dashboard.ts';
import { makeTracker } from '../support/tracking.ts';

const ROLES = ['read-only', 'member', 'owner'] as const;
/** What everybody may do: only with what is their own. */
const OWN = [
  '/dashboard/logout',
  '/dashboard/logout-everywhere',
  '/dashboard/password',
  '/dashboard/account/time-zone',
  '/dashboard/account/end-login',
  '/dashboard/account/end-other-logins',
  '/dashboard/account/second-factor',
  '/dashboard/account/second-factor/recovery-codes',
  '/dashboard/account/second-factor/disable',
  '/dashboard/start/hide',
];

const clock = manualClock();
let api: TestApi;
let key: Key;
let pages: readonly GuardedRoute[];
let closePages: () => Promise<void>;
const users = {} as Record<Role, TestUser>;

beforeAll(async () => {
  api = await startApi({ clock });
  key = await api.key();
  for (const role of ROLES) users[role] = await makeUser(api, key.partner_id, { role });
  const limiter = createRateLimiter({ ...api.runtime, alone: () => true });
  const context = await openApiContext(api.runtime, limiter, 'http://doorplate.test', undefined);
  const dashboard = buildDashboard(context, { routes: [], admit: () => null });
  closePages = async () => {
    await dashboard.close();
    await context.erasures.close();
  };
  pages = dashboard.routes.filter((route): route is GuardedRoute => 'needs' in route);
});
afterAll(async () => {
  await closePages?.();
  await api.close();
});
// Past the minute that forms are counted in.
beforeEach(() => clock.advance(2 * MINUTE));

const actions = () => pages.filter(({ method }) => method === 'POST');
const filled = (path: string) => path.replace('/dashboard', '').replaceAll(/:\w+/g, () => randomUUID());
const isAllowed = (role: Role, needs: Role): boolean => ROLES.indexOf(role) >= ROLES.indexOf(needs);

describe('the role that an action needs', () => {
  it('is said by each of them, and is none only for what is the user’s own', () => {
    for (const { path, needs } of actions()) expect(ROLES, path).toContain(needs);
    const open = actions().filter(({ needs }) => needs === 'read-only');
    expect(open.map(({ path }) => path).toSorted()).toEqual(OWN.toSorted());
  });

  it('is owner for the team and for keys', () => {
    const own = actions().filter(({ path }) => /^\/dashboard\/(team|keys)(\/|$)/.test(path));
    expect(own.length).toBeGreaterThan(8);
    for (const { path, needs } of own) expect(needs, path).toBe('owner');
  });

  it('is that of the page that asks for it', () => {
    for (const { path, needs } of actions()) {
      const question = pages.find((page) => page.method === 'GET' && page.path === path);
      if (question && /\/(reveal|delete|rotate|revoke|remove|reset-password)$/.test(path))
        expect(question.needs, path).toBe(needs);
    }
  });

  it.each(ROLES)('is checked where each action of a user who is %s is handled', async (role) => {
    for (const { path, needs } of actions()) {
      clock.advance(2 * MINUTE);
      // Some actions end the login.
      const browser = await loggedIn(api, users[role]);
      const answer = await browser.send(filled(path));
      const isRefused = answer.statusCode === 403;
      expect([path, isRefused], answer.body).toEqual([path, !isAllowed(role, needs)]);
      if (isRefused) {
        expect(answer.body).toContain(`needs the role ${needs}`);
        expect(answer.body).toContain(users.owner.name);
      }
    }
  });
});

describe('the password', () => {
  it('is asked for by every lasting change of access, and by nothing else', async () => {
    const asking = [];
    for (const { path } of actions()) {
      clock.advance(2 * MINUTE);
      const browser = await loggedIn(api, users.owner);
      const { body } = await browser.send(filled(path), { proof: '' });
      if (body.includes('Confirm with your password')) asking.push(path);
    }
    expect(asking.toSorted()).toEqual(
      [
        '/dashboard/account/second-factor',
        '/dashboard/account/second-factor/recovery-codes',
        '/dashboard/account/second-factor/disable',
        '/dashboard/team/invitations',
        '/dashboard/team/second-factor',
        '/dashboard/team/:user_id/role',
        '/dashboard/team/:user_id/remove',
        '/dashboard/team/:user_id/reset-password',
        '/dashboard/keys',
        '/dashboard/keys/:key_id',
        '/dashboard/keys/:key_id/revoke',
      ].toSorted(),
    );
  });

  it('has a field in each form that needs it', async () => {
    const browser = await loggedIn(api, users.owner);
    const member = `/team/${users.member.user_id}`;
    const paths = ['/team', '/team/invite', member, `${member}/remove`, `${member}/reset-password`]
      .concat(['/keys/new', `/keys/${key.key_id}`, `/keys/${key.key_id}/revoke`])
      .concat(['/account/second-factor']);
    for (const path of paths) {
      clock.advance(1_000);
      const { body } = await browser.get(path);
      const ids = [...body.matchAll(/ id="(proof[\w-]*)" name="proof"/g)].map(([, id]) => id);
      expect(ids.length, path).toBe(1);
      expect(new Set(ids).size, path).toBe(ids.length);
    }
  });

  it('is tried ten times in fifteen minutes, and then no right one counts', async () => {
    const browser = await loggedIn(api, await makeUser(api, key.partner_id));
    const create = (proof: string) => browser.send('/keys', { name: 'stolen', proof });
    for (let nth = 0; nth < 10; nth += 1) expect((await create('wrong')).statusCode).toBe(400);
    const refused = await create(PASSWORD);
    expect([refused.statusCode, Number(refused.headers['retry-after']) > 0]).toEqual([429, true]);
    expect((await browser.get('/keys')).body).not.toContain('stolen');
  });
});

describe('a user who is read-only', () => {
  let browser: LoggedIn;
  beforeAll(async () => {
    browser = await loggedIn(api, users['read-only']);
  });

  it.each([
    '',
    '/sessions',
    '/trackers',
    '/webhooks',
    '/domains',
    '/billing',
    '/billing.csv',
    '/keys',
    '/team',
  ])('sees /dashboard%s', async (path) => {
    expect((await browser.get(path)).statusCode).toBe(200);
  });

  it('is sent to no form that an empty page does not show', async () => {
    const empty = await loggedIn(
      api,
      await makeUser(api, (await api.key()).partner_id, { role: 'read-only' }),
    );
    for (const path of ['/trackers', '/webhooks', '/domains', '/sessions']) {
      const { body } = await empty.get(path);
      expect(body, path).toContain('An owner or a member of your team adds the first one.');
      expect(body, path).not.toMatch(/>Add (a|an) (website|endpoint|domain)</);
    }
  });

  it('is offered no question before a change', async () => {
    const tracker = await makeTracker(api, key);
    expect((await browser.get(`/trackers/${tracker}`)).statusCode).toBe(200);
    expect((await browser.get(`/trackers/${tracker}/delete`)).statusCode).toBe(403);
  });

  it('changes nothing through a page that calls more than it says', async () => {
    let calls = 0;
    const route = {
      method: 'POST',
      path: '/v1/trackers',
      access: 'partner',
      handle: async () => {
        calls += 1;
        return { status: 200, body: '{}' };
      },
    } as never;
    const caller = createApi({ routes: [route], admit: () => null }).callAsUser;
    const user = (role: Role) => ({ role }) as LoggedInUser;
    const post = (role: Role) => caller({} as never, user(role))('POST', '/v1/trackers');
    expect(await post('read-only')).toMatchObject({ ok: false, status: 403, code: 'role_required' });
    expect(calls).toBe(0);
    expect(await post('member')).toMatchObject({ ok: true });
  });
});
