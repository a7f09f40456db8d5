import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { changeUser } from '../../commands/partners/manage-user.ts';
import { DAY, MINUTE } from '../../domain/kernel/time.ts';
import { forgetUser } from '../../processors/partners/passwords.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import {
  browse,
  cookieOf,
  loggedIn,
  logIn,
  makeUser,
  PASSWORD,
  type TestUser,
} from '../support/dashboard.ts';

const clock = manualClock();
let api: TestApi;
let key: Key;
let user: TestUser;

beforeAll(async () => {
  api = await startApi({ clock });
  key = await api.key();
  user = await makeUser(api, key.partner_id);
});
afterAll(() => api.close());
// Past the window that attempts are counted in.
beforeEach(() => clock.advance(16 * MINUTE));

it('shows a user thirty pages a second, and says when to ask for more', async () => {
  const busy = await makeUser(api, key.partner_id);
  const [person, other] = [await loggedIn(api, busy), await loggedIn(api, user)];
  clock.advance(MINUTE);
  const pages = await Promise.all(Array.from({ length: 32 }, () => person.get('/account')));
  const refused = pages.filter(({ statusCode }) => statusCode === 429);
  expect(refused).toHaveLength(2);
  expect(refused[0]?.headers['retry-after']).toBe('1');
  expect((await other.get('/account')).statusCode).toBe(200);
  clock.advance(1_000);
  expect((await person.get('/account')).statusCode).toBe(200);
});

describe('forms', () => {
  it('are sixty a minute of one user: the next one does nothing and says when to try again', async () => {
    const busy = await makeUser(api, key.partner_id);
    const [person, other] = [await loggedIn(api, busy), await loggedIn(api, user)];
    const form = { name: '', requests_per_second: '1' };
    const sent = [];
    for (let nth = 0; nth < 64; nth += 1) sent.push(await person.send('/keys', form));
    const refused = sent.filter(({ statusCode }) => statusCode === 429);
    expect(refused).toHaveLength(4);
    expect(sent.filter(({ statusCode }) => statusCode === 400)).toHaveLength(60);
    expect(Number(refused[0]?.headers['retry-after'])).toBeGreaterThan(0);
    expect((await other.send('/keys', form)).statusCode).toBe(400);
    clock.advance(2 * MINUTE);
    expect((await person.send('/keys', form)).statusCode).toBe(400);
  });

  it('that end logins are taken whatever a stolen login has sent before', async () => {
    const busy = await makeUser(api, key.partner_id);
    const [owner, thief] = [await loggedIn(api, busy), await loggedIn(api, busy)];
    await Promise.all(Array.from({ length: 60 }, () => thief.send('/keys', { name: '' })));
    expect((await owner.send('/keys', { name: '' })).statusCode).toBe(429);
    expect((await owner.send('/password', { current: 'wrong' })).statusCode).toBe(400);
    expect((await owner.send('/logout-everywhere')).statusCode).toBe(303);
    expect((await thief.get('/account')).headers.location).toContain('/dashboard/login');
  });

  it('that the API refuses with 429 say when to try again', async () => {
    const person = await loggedIn(api, user);
    // The API's own rate of a user's calls, spent by pages that make one or more of them.
    const pages = await Promise.all(Array.from({ length: 80 }, () => person.get('/trackers')));
    const refused = pages.filter(({ statusCode }) => statusCode === 429);
    expect(refused.length).toBeGreaterThan(0);
    for (const { headers } of refused) expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
  });

  it('with a password say when to try again, after too many wrong ones', async () => {
    const busy = await makeUser(api, key.partner_id);
    const person = await loggedIn(api, busy);
    const change = () =>
      person.send('/password', {
        current: 'wrong',
        password: 'correct horse battery staple',
        again: 'correct horse battery staple',
      });
    let answer = await change();
    for (let tries = 0; tries < 12 && answer.statusCode === 400; tries += 1) answer = await change();
    expect(answer.statusCode).toBe(429);
    expect(answer.headers['retry-after']).toMatch(/^[1-9]\d*$/);
  });
});

it('counts forms for a new password by user and network, whatever is wrong with them', async () => {
  const busy = await makeUser(api, key.partner_id);
  const person = await loggedIn(api, busy);
  const forms = Array.from({ length: 61 }, () =>
    person.send('/password', { current: 'a', password: 'b', again: 'c' }),
  );
  const answers = await Promise.all(forms);
  const refused = answers.filter(({ statusCode }) => statusCode === 429);
  expect(refused.length).toBe(1);
  expect(refused[0]?.headers['retry-after']).toMatch(/^[1-9]\d*$/);
  expect((await person.send('/logout-everywhere')).statusCode).toBe(303);
});

const isLoggedIn = async (cookie: string): Promise<boolean> =>
  (await browse(api, 'GET', '/dashboard/account', { cookie })).statusCode === 200;

describe('a login', () => {
  it('gives a cookie that scripts, other hosts and plain http do not see', async () => {
    const answer = await logIn(api, user.name);
    expect(answer.statusCode).toBe(303);
    expect(answer.headers.location).toBe('/dashboard?said=logged-in');
    expect(answer.headers['set-cookie']).toEqual([
      expect.stringMatching(/^__Host-doorplate=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Lax$/),
      expect.stringMatching(
        /^__Host-doorplate-device=[\w.-]+; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=7776000$/,
      ),
    ]);
  });

  it('of a browser that has logged in before is taken after ten wrong passwords of its network', async () => {
    const person = await makeUser(api, key.partner_id);
    const device = String((await logIn(api, person.name)).headers['set-cookie']?.[1]).split(';')[0] ?? '';
    for (let nth = 0; nth < 10; nth += 1) await logIn(api, person.name, 'wrong');
    expect((await logIn(api, person.name)).statusCode).toBe(429);
    expect((await logIn(api, person.name, PASSWORD, { cookie: device })).statusCode).toBe(303);
  });

  it('is refused with 503 and Retry-After while too many passwords are checked', async () => {
    const flood = Array.from({ length: 80 }, (_, nth) =>
      logIn(api, `guess ${nth}`, 'wrong', { headers: { 'x-forwarded-for': `1.1.7.${nth}` } }),
    );
    const answers = await Promise.all(flood);
    const refused = answers.filter(({ statusCode }) => statusCode === 503);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused[0]?.headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect(refused[0]?.headers['set-cookie']).toBeUndefined();
    expect((await logIn(api, user.name)).statusCode).toBe(303);
  });

  it('takes the name in upper and lower case', async () => {
    expect((await logIn(api, user.name.toUpperCase())).statusCode).toBe(303);
  });

  it('is refused in the same words for a wrong password and for an unknown user', async () => {
    const wrong = await logIn(api, user.name, 'not the password');
    const unknown = await logIn(api, 'no such user', PASSWORD);
    expect([wrong.statusCode, unknown.statusCode]).toEqual([401, 401]);
    const without = (body: string) => body.replace(/value="[^"]*"/g, '');
    expect(without(wrong.body)).toBe(without(unknown.body));
    expect(cookieOf(wrong)).toBeNull();
  });

  it('leads to the page that was wanted, and to no other host', async () => {
    const wanted = await browse(api, 'GET', '/dashboard/keys?said=x');
    expect(wanted.statusCode).toBe(303);
    expect(wanted.headers.location).toBe('/dashboard/login?next=%2Fdashboard%2Fkeys%3Fsaid%3Dx');
    const long = await browse(api, 'GET', `/dashboard/keys?said=${'~'.repeat(8_000)}`);
    expect(long.headers.location).toBe('/dashboard/login');
    const device = String((await logIn(api, user.name)).headers['set-cookie']?.[1]).split(';')[0] ?? '';
    const to = async (next: string) => {
      const form = { name: user.name, password: PASSWORD, next };
      return (await browse(api, 'POST', '/dashboard/login', { form, cookie: device })).headers.location;
    };
    expect(await to('/dashboard/keys?said=x')).toBe('/dashboard/keys?said=x');
    expect(await to('https://evil.example/dashboard')).toBe('/dashboard');
    expect(await to('/dashboard/../v1/usage')).toBe('/dashboard');
    expect(await to('//evil.example')).toBe('/dashboard');
    for (const letter of ['€', '\0', '\r\nx: y'])
      expect(await to(`/dashboard?x=${letter}`)).toBe('/dashboard');
  });

  it('says so where the browser has not kept its cookie, as over http', async () => {
    const form = { name: user.name, password: PASSWORD, next: '/dashboard/keys' };
    const led = await browse(api, 'POST', '/dashboard/login', { form });
    const back = await browse(api, 'GET', led.headers.location ?? '');
    expect([back.statusCode, back.headers.location]).toEqual([303, '/dashboard/login?said=no-cookie']);
    const headers = { referer: 'https://dashboard.test/dashboard/login' };
    const login = await browse(api, 'GET', back.headers.location ?? '', { headers });
    expect(login.body).toContain('has not kept the cookie');
    const kept = await browse(api, 'GET', led.headers.location ?? '', { cookie: cookieOf(led) ?? '' });
    expect(kept.statusCode).toBe(200);
    // A browser that has ended its login, and goes back, keeps the cookie of the device.
    const device = String(led.headers['set-cookie']?.[1]).split(';')[0] ?? '';
    const later = await browse(api, 'GET', led.headers.location ?? '', { cookie: device });
    expect(later.headers.location).toContain('/dashboard/login?next=');
  });

  it('ends the one that the browser had before', async () => {
    const earlier = await loggedIn(api, user);
    const elsewhere = await loggedIn(api, user);
    expect((await logIn(api, user.name, 'wrong', { cookie: earlier.cookie })).statusCode).toBe(401);
    expect(await isLoggedIn(earlier.cookie)).toBe(true);
    expect((await logIn(api, user.name, PASSWORD, { cookie: earlier.cookie })).statusCode).toBe(303);
    expect([await isLoggedIn(earlier.cookie), await isLoggedIn(elsewhere.cookie)]).toEqual([false, true]);
  });

  it('is no API credential, and an API key is no login', async () => {
    const { cookie } = await loggedIn(api, user);
    const token = cookie.split('=')[1] ?? '';
    const usage = (headers: Record<string, string>) =>
      api.app.inject({ method: 'GET', url: '/v1/usage', headers });
    expect((await usage({ cookie })).statusCode).toBe(401);
    expect((await usage({ authorization: `Bearer ${token}` })).statusCode).toBe(401);
    const headers = { authorization: `Bearer ${key.api_key}` };
    expect((await browse(api, 'GET', '/dashboard/keys', { headers })).statusCode).toBe(303);
    const asCookie = `__Host-doorplate=${key.api_key}`;
    expect((await browse(api, 'GET', '/dashboard/keys', { cookie: asCookie })).statusCode).toBe(303);
  });

  it('ends with log-out, here alone or everywhere', async () => {
    const [one, two, three] = await Promise.all([
      loggedIn(api, user),
      loggedIn(api, user),
      loggedIn(api, user),
    ]);
    const out = await one.send('/logout');
    expect(String(out.headers['set-cookie'])).toContain('Max-Age=0');
    expect(await Promise.all([one, two, three].map(({ cookie }) => isLoggedIn(cookie)))).toEqual([
      false,
      true,
      true,
    ]);
    await two.send('/logout-everywhere');
    expect(await isLoggedIn(three.cookie)).toBe(false);
  });

  it('ends when it is not used for twelve hours, and after seven days however it is used', async () => {
    const idle = await loggedIn(api, user);
    const busy = await loggedIn(api, user);
    for (let hours = 0; hours < 11; hours += 10) {
      clock.advance(10 * 60 * MINUTE);
      expect(await isLoggedIn(busy.cookie)).toBe(true);
    }
    expect(await isLoggedIn(idle.cookie)).toBe(false);
    for (let day = 0; day < 14; day += 1) {
      clock.advance(DAY / 2 - MINUTE);
      await isLoggedIn(busy.cookie);
    }
    expect(await isLoggedIn(busy.cookie)).toBe(false);
  });

  it('ends with its user', async () => {
    const gone = await makeUser(api, key.partner_id);
    const { cookie } = await loggedIn(api, gone);
    const context = { correlationId: 'a', causationId: 'a', at: clock.now() };
    await changeUser(api.runtime.store, 'RemoveUser', gone.user_id, context);
    await api.caughtUp();
    expect(await isLoggedIn(cookie)).toBe(false);
    expect((await logIn(api, gone.name)).statusCode).toBe(401);
    await forgetUser(api.runtime.pool, gone.user_id);
    expect((await logIn(api, gone.name)).statusCode).toBe(401);
  });
});

it('attempts to log in from one network, which for IPv6 is a /64, are limited, and a refusal says when to try again', async () => {
  const target = await makeUser(api, key.partner_id);
  const from = (ip: string) => ({ headers: { 'x-forwarded-for': ip } });
  for (let n = 0; n < 10; n += 1) {
    expect((await logIn(api, target.name, 'wrong', from(`2a01:4f8:1:2::${n}`))).statusCode).toBe(401);
  }
  const refused = await logIn(api, target.name, PASSWORD, from('2a01:4f8:1:2::10'));
  expect(refused.statusCode).toBe(429);
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  // Who is elsewhere is not locked out by them.
  expect((await logIn(api, target.name, PASSWORD, from('2a01:4f8:1:3::1'))).statusCode).toBe(303);
});

describe('a first password', () => {
  it('opens nothing but its own change', async () => {
    const fresh = await makeUser(api, key.partner_id, { isFirst: true });
    const { get, send } = await loggedIn(api, fresh);
    for (const path of ['', '/keys', '/account', '/sessions', '/billing.csv']) {
      const answer = await get(path);
      expect([answer.statusCode, answer.headers.location], path).toEqual([303, '/dashboard/password']);
    }
    const made = await send('/keys', { name: 'sneaked in' });
    expect(made.headers.location).toBe('/dashboard/password');
    const change = { current: PASSWORD, password: 'four words are better', again: 'four words are better' };
    const changed = await send('/password', change);
    expect(changed.headers.location).toBe('/dashboard');
    const cookie = cookieOf(changed) ?? '';
    expect(await isLoggedIn(cookie)).toBe(true);
    expect((await logIn(api, fresh.name)).statusCode).toBe(401);
    expect((await logIn(api, fresh.name, 'four words are better')).statusCode).toBe(303);
  });

  it.each([
    [{ password: 'short', again: 'short' }, '12 to 200 characters'],
    [{ password: 'long enough, but', again: 'spelled otherwise' }, 'differ'],
    [{ password: PASSWORD, again: PASSWORD }, 'the one until now'],
    [{ current: 'wrong', password: 'four words are better', again: 'four words are better' }, 'is wrong'],
  ])('is not changed by %j', async (form, why) => {
    const fresh = await makeUser(api, key.partner_id, { isFirst: true });
    const { send } = await loggedIn(api, fresh);
    const answer = await send('/password', { current: PASSWORD, ...form });
    expect(answer.statusCode).toBe(400);
    expect(answer.body).toContain(why);
    expect((await logIn(api, fresh.name)).statusCode).toBe(303);
  });

  it('ends every other login when it is changed', async () => {
    const someone = await makeUser(api, key.partner_id);
    const other = await loggedIn(api, someone);
    const here = await loggedIn(api, someone);
    const words = 'four words are better';
    await here.send('/password', { current: PASSWORD, password: words, again: words });
    expect(await isLoggedIn(other.cookie)).toBe(false);
    expect(await isLoggedIn(here.cookie)).toBe(false);
  });
});

describe('a form', () => {
  it.each([
    ['no token', { form: { csrf: '' } }],
    ['the token of another login', { form: { csrf: 'x'.repeat(43) } }],
  ])('with %s does nothing', async (_what, { form }) => {
    const { cookie } = await loggedIn(api, user);
    const answer = await browse(api, 'POST', '/dashboard/logout-everywhere', { cookie, form });
    expect(answer.statusCode).toBe(403);
    expect(await isLoggedIn(cookie)).toBe(true);
  });

  it.each([
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: 'https://dashboard.test.evil.example' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ])('from elsewhere (%j) does nothing, not even with its token', async (headers) => {
    const { cookie, get } = await loggedIn(api, user);
    const csrf = /name="csrf" value="([^"]+)"/.exec((await get('/account')).body)?.[1] ?? '';
    const answer = await browse(api, 'POST', '/dashboard/logout-everywhere', {
      cookie,
      form: { csrf },
      headers,
    });
    expect(answer.statusCode).toBe(403);
    expect(await isLoggedIn(cookie)).toBe(true);
    expect((await logIn(api, user.name, PASSWORD, { headers })).statusCode).toBe(403);
  });
});

describe('a page', () => {
  it('allows nothing inline, nothing from elsewhere, no frame and no copy in a cache', async () => {
    const { get } = await loggedIn(api, user);
    const { headers, body } = await get('/keys');
    expect(headers['content-security-policy']).toMatch(/default-src 'none'.*frame-ancestors 'none'/);
    expect(headers['content-security-policy']).not.toContain('unsafe');
    expect(headers['cache-control']).toBe('no-store');
    expect(headers['x-content-type-options']).toBe('nosniff');
    expect(body).not.toMatch(/<script(?! defer src="\/dashboard\/assets\/app\.js")|\son\w+=|style="/);
  });

  it('is found with a slash at its end, and is answered in words where there is none', async () => {
    expect((await browse(api, 'GET', '/dashboard/')).headers.location).toBe('/dashboard');
    const none = await browse(api, 'GET', '/dashboard/no/such/page');
    expect(none.statusCode).toBe(404);
    expect(none.headers['content-type']).toContain('text/html');
  });

  it.each([
    ['GET', '/dashboard/%zz', 404],
    ['PUT', '/dashboard', 405],
    ['DELETE', '/dashboard/login', 405],
    ['PUT', '/dashboard/no/such/page', 405],
    ['PATCH', '/dashboard/assets/app.js', 405],
  ] as const)('refuses %s %s in words, under the policy of pages', async (method, url, status) => {
    const refused = await api.app.inject({ method, url, headers: { host: 'dashboard.test' } });
    expect([refused.statusCode, refused.headers['content-type']]).toEqual([
      status,
      'text/html; charset=utf-8',
    ]);
    expect(refused.headers['content-security-policy']).toContain("default-src 'none'");
    expect(refused.body).toContain('role="alert"');
    if (status === 405) expect(refused.headers.allow).toContain('GET');
    const ofApi = await api.app.inject({
      method: 'PUT',
      url: '/v1/usage',
      headers: { host: 'doorplate.test' },
    });
    expect(ofApi.headers['content-type']).toBe('application/json');
  });

  it('shows words when it fails', async () => {
    const { cookie } = await loggedIn(api, user);
    const answer = await browse(api, 'POST', '/dashboard/keys', {
      cookie,
      form: { csrf: 'x'.repeat(24_576) },
    });
    expect(answer.statusCode).toBe(413);
    expect(answer.headers['content-type']).toContain('text/html');
    expect(answer.body).toContain('body_too_large');
  });
});

describe('the message of a change', () => {
  const said = 'Times are shown in this zone from now on.';

  it('is shown once, by the page that the change leads to', async () => {
    const page = await loggedIn(api, await makeUser(api, key.partner_id));
    const changed = await page.send('/account/time-zone', { time_zone: 'Europe/Berlin' });
    expect(changed.headers.location).toBe('/dashboard/account');
    const cookie = `${page.cookie}; ${cookieOf(changed)}`;
    const show = (headers: Readonly<Record<string, string>> = {}) =>
      browse(api, 'GET', '/dashboard/account', { cookie, headers });
    const inBackground = await show({ 'sec-fetch-dest': 'empty' });
    expect([inBackground.body.includes(said), inBackground.headers['set-cookie']]).toEqual([
      false,
      undefined,
    ]);
    const shown = await show({ 'sec-fetch-dest': 'document' });
    expect(shown.body).toContain(said);
    expect(shown.headers['set-cookie']).toMatch(/^__Host-doorplate-said=;.* Max-Age=0$/);
  });

  it('is not repeated by an address, nor chosen by one', async () => {
    const page = await loggedIn(api, await makeUser(api, key.partner_id));
    expect((await page.get('/account?said=time-zone-set')).body).not.toContain(said);
    for (const path of ['said=logged-out', 'said=no-cookie']) {
      const { body } = await browse(api, 'GET', `/dashboard/login?${path}`);
      expect(body, path).not.toContain('role="status"');
    }
  });
});
