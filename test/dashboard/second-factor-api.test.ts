import { randomUUID } from 'node:crypto';
import { TOTP } from 'otpauth';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { MINUTE } from '../../domain/kernel/time.ts';
import { createSecondFactors } from '../../processors/partners/second-factor.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import {
  browse,
  cookieOf,
  type LoggedIn,
  loggedIn,
  logIn,
  makeUser,
  PASSWORD,
  type TestUser,
} from '../support/dashboard.ts';

const clock = manualClock();
let api: TestApi;
let key: Key;

beforeAll(async () => {
  api = await startApi({ clock });
  key = await api.key();
});
afterAll(() => api.close());
// Past the window that attempts are counted in.
beforeEach(() => clock.advance(16 * MINUTE));

const PATH = '/account/second-factor';
const STEP = 30_000;

const hidden = (body: string, name: string): string =>
  new RegExp(`name="${name}" value="([^"]*)"`).exec(body)?.[1] ?? '';
const secretIn = (body: string): string =>
  (/aria-label="Secret"><code>([A-Z2-7 ]+)</.exec(body)?.[1] ?? '').replaceAll(' ', '');
const codesIn = (body: string): string[] =>
  (/aria-label="Recovery codes"><code>([^<]*)</.exec(body)?.[1] ?? '').split('\n');

interface WithFactor {
  readonly user: TestUser;
  readonly browser: LoggedIn;
  /** The code of the app, now. */
  readonly code: () => string;
  readonly recoveryCodes: readonly string[];
}

const fullWidth = (code: string): string =>
  code.replaceAll(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)));

const codeOf = (secret: string, at = clock.now()): string => new TOTP({ secret }).generate({ timestamp: at });

/** A user who has set up a second factor in the browser. */
const withFactor = async (partnerId = key.partner_id): Promise<WithFactor> => {
  const user = await makeUser(api, partnerId);
  const browser = await loggedIn(api, user);
  const { body } = await browser.get(PATH);
  const secret = secretIn(body);
  const set = await browser.send(PATH, { proposal: hidden(body, 'proposal'), code: codeOf(secret) });
  expect(set.statusCode, set.body).toBe(201);
  // The code of the set-up counts no second time.
  clock.advance(STEP);
  return { user, browser, code: () => codeOf(secret), recoveryCodes: codesIn(set.body) };
};

const enter = (form: Record<string, string>, headers: Record<string, string> = {}) =>
  browse(api, 'POST', '/dashboard/login/code', { form, headers });

/** Gives the password. @returns what the form for the code carries */
const firstStep = async (user: TestUser, headers: Record<string, string> = {}): Promise<string> => {
  const asked = await logIn(api, user.name, PASSWORD, { headers });
  expect(asked.statusCode).toBe(200);
  expect(cookieOf(asked)).toBeNull();
  return hidden(asked.body, 'second_step');
};
const isIn = async (cookie: string): Promise<boolean> =>
  (await browse(api, 'GET', '/dashboard/account', { cookie })).statusCode === 200;

describe('setting up a second factor', () => {
  it('shows a QR code and the secret, and gives ten recovery codes for a right first code', async () => {
    const { recoveryCodes, browser } = await withFactor();
    expect(recoveryCodes).toHaveLength(10);
    for (const code of recoveryCodes)
      expect(code).toMatch(/^[0-9a-hjkmnp-tv-z]{4}(-[0-9a-hjkmnp-tv-z]{4}){3}$/);
    const { body } = await browser.get(PATH);
    expect(body).toContain('10 unused recovery codes');
    expect(body).not.toContain('Recovery codes"><code>');
  });

  it('keeps wrong codes of a set-up to ten', async () => {
    const browser = await loggedIn(api, await makeUser(api, (await api.key()).partner_id));
    const proposal = hidden((await browser.get(PATH)).body, 'proposal');
    const statuses = [];
    for (let nth = 0; nth < 11; nth += 1)
      statuses.push((await browser.send(PATH, { proposal, code: '0000é0' })).statusCode);
    expect(statuses).toEqual([...Array(10).fill(400), 429]);
  });

  it('has the page of a wrong code show the same secret again', async () => {
    const browser = await loggedIn(api, await makeUser(api, key.partner_id));
    const { body } = await browser.get(PATH);
    expect(body).toMatch(/<svg class="qr".*role="img"/s);
    const wrong = await browser.send(PATH, { proposal: hidden(body, 'proposal'), code: '000000' });
    expect([wrong.statusCode, secretIn(wrong.body)]).toEqual([400, secretIn(body)]);
  });

  it('takes no secret that another login was shown', async () => {
    const user = await makeUser(api, key.partner_id);
    const [one, other] = [await loggedIn(api, user), await loggedIn(api, user)];
    const { body } = await one.get(PATH);
    const form = { proposal: hidden(body, 'proposal'), code: codeOf(secretIn(body)) };
    expect((await other.send(PATH, form)).statusCode).toBe(400);
    expect((await other.send(PATH, { ...form, proposal: 'made.up' })).statusCode).toBe(400);
    expect((await logIn(api, user.name)).statusCode).toBe(303);
  });

  it('takes a proposed secret once, also after the second factor was turned off', async () => {
    const browser = await loggedIn(api, await makeUser(api, key.partner_id));
    const { body } = await browser.get(PATH);
    const secret = secretIn(body);
    const set = () => browser.send(PATH, { proposal: hidden(body, 'proposal'), code: codeOf(secret) });
    expect((await set()).statusCode).toBe(201);
    for (const code of [codeOf(secret), '000000']) {
      const again = await browser.send(PATH, { proposal: hidden(body, 'proposal'), code });
      expect([again.statusCode, secretIn(again.body)]).toEqual([409, '']);
    }
    expect((await browser.send(`${PATH}/disable`)).statusCode).toBe(303);
    const anew = await set();
    expect([anew.statusCode, anew.body.includes('stale_secret')]).toEqual([400, true]);
    expect(secretIn(anew.body)).not.toBe(secret);
    const fresh = { proposal: hidden(anew.body, 'proposal'), code: codeOf(secretIn(anew.body)) };
    expect((await browser.send(PATH, fresh)).statusCode).toBe(201);
  });

  it('takes one of two posts of a proposed secret at once', async () => {
    const browser = await loggedIn(api, await makeUser(api, key.partner_id));
    const { body } = await browser.get(PATH);
    const form = { proposal: hidden(body, 'proposal'), code: codeOf(secretIn(body)) };
    const sent = await Promise.all([browser.send(PATH, form), browser.send(PATH, form)]);
    expect(sent.map(({ statusCode }) => statusCode).toSorted()).toEqual([201, 409]);
  });

  it('takes a proposed secret for ten minutes', async () => {
    const browser = await loggedIn(api, await makeUser(api, key.partner_id));
    const { body } = await browser.get(PATH);
    clock.advance(10 * MINUTE);
    const late = await browser.send(PATH, {
      proposal: hidden(body, 'proposal'),
      code: codeOf(secretIn(body)),
    });
    expect([late.statusCode, late.body.includes('stale_secret')]).toEqual([400, true]);
  });

  it('shows a code that apps and cameras read, whatever the name of the user', async () => {
    const name = `a:b ${randomUUID()} ${'\u{1f469}'.repeat(50)}`;
    const browser = await loggedIn(api, await makeUser(api, key.partner_id, { name }));
    const { body } = await browser.get(PATH);
    const [, modules, width] = /class="qr" viewBox="0 0 (\d+) \d+" width="(\d+)"/.exec(body) ?? [];
    expect(Number(width) / Number(modules)).toBeGreaterThanOrEqual(4);
    const factors = createSecondFactors(api.runtime);
    const { uri } = await factors.propose(randomUUID(), name, 'a login');
    // Between issuer and name alone.
    expect(decodeURIComponent(new URL(uri).pathname).split(':')).toHaveLength(2);
  });

  it('ends the other logins, which gave no code', async () => {
    const user = await makeUser(api, key.partner_id);
    const [one, other] = [await loggedIn(api, user), await loggedIn(api, user)];
    const { body } = await one.get(PATH);
    await one.send(PATH, { proposal: hidden(body, 'proposal'), code: codeOf(secretIn(body)) });
    expect([await isIn(one.cookie), await isIn(other.cookie)]).toEqual([true, false]);
  });

  it('keeps the secret sealed and the recovery codes as digests', async () => {
    const { user, recoveryCodes } = await withFactor();
    const { rows } = await api.sql.query(
      `select f.secret::text || string_agg(c.digest, ' ') as kept from work.second_factor f
       join work.recovery_code c using (user_id) where user_id = $1 group by f.secret::text`,
      [user.user_id],
    );
    for (const code of recoveryCodes) expect(rows[0].kept).not.toContain(code.replaceAll('-', ''));
    expect(JSON.parse(rows[0].kept.slice(0, rows[0].kept.indexOf('}') + 1))).toHaveProperty('sealed');
  });
});

describe('a login with a second factor', () => {
  it('begins with the code, goes to the page that was wanted, and gives the device cookie then', async () => {
    const { user, code } = await withFactor();
    const form = { name: user.name, password: PASSWORD, next: '/dashboard/keys' };
    const asked = await browse(api, 'POST', '/dashboard/login', { form });
    expect(asked.headers['set-cookie']).toBeUndefined();
    const entered = await enter({
      second_step: hidden(asked.body, 'second_step'),
      next: hidden(asked.body, 'next'),
      code: code(),
    });
    expect([entered.statusCode, entered.headers.location]).toEqual([303, '/dashboard/keys?said=logged-in']);
    expect(entered.headers['set-cookie']).toHaveLength(2);
    expect(await isIn(cookieOf(entered) ?? '')).toBe(true);
  });

  it('takes a code once, also of two attempts at once', async () => {
    const { user, code } = await withFactor();
    const second_step = await firstStep(user);
    const attempts = await Promise.all([1, 2].map(() => enter({ second_step, code: code() })));
    expect(attempts.map(({ statusCode }) => statusCode).toSorted()).toEqual([303, 401]);
    expect((await enter({ second_step, code: code() })).statusCode).toBe(401);
    clock.advance(STEP);
    expect((await enter({ second_step, code: code() })).statusCode).toBe(303);
  });

  it('takes each recovery code once, however it is typed', async () => {
    const { user, recoveryCodes } = await withFactor();
    const second_step = await firstStep(user);
    const typed = (recoveryCodes[0] ?? '').toUpperCase().replaceAll('-', ' ');
    expect((await enter({ second_step, code: typed })).statusCode).toBe(303);
    expect((await enter({ second_step, code: typed })).statusCode).toBe(401);
    expect((await enter({ second_step, code: recoveryCodes[1] ?? '' })).statusCode).toBe(303);
  });

  it('takes the code of the step before and after, and none of longer ago', async () => {
    const { user, code } = await withFactor();
    const early = code();
    clock.advance(3 * STEP);
    const second_step = await firstStep(user);
    expect((await enter({ second_step, code: early })).statusCode).toBe(401);
    const last = code();
    clock.advance(STEP);
    expect((await enter({ second_step, code: last })).statusCode).toBe(303);
  });

  it('asks for the password again after ten minutes, and after a new password', async () => {
    const { user, code, browser } = await withFactor();
    const second_step = await firstStep(user);
    clock.advance(10 * MINUTE);
    const late = await enter({ second_step, code: code() });
    expect([late.statusCode, late.body.includes('login_expired')]).toEqual([401, true]);
    const again = await firstStep(user);
    const words = 'four words are better';
    const changed = await browser.send('/password', { current: PASSWORD, password: words, again: words });
    expect(changed.statusCode).toBe(303);
    expect(await isIn(cookieOf(changed) ?? '')).toBe(true);
    expect((await enter({ second_step: again, code: code() })).body).toContain('login_expired');
  });

  it.each(['', 'made.up', '5f0c3f0e-3f0e-4f0e-8f0e-3f0e3f0e3f0e.1.x'])(
    'has no step that %j begins',
    async (step) => {
      expect((await enter({ second_step: step, code: '000000' })).body).toContain('login_expired');
    },
  );

  it('takes a code in full-width digits, and any other text as a wrong code that counts', async () => {
    const { user, browser, code } = await withFactor();
    const second_step = await firstStep(user);
    for (const typed of ['é23456', '१२३४५६', '12345\u0000', '\u{1f469}'.repeat(6), '６'.repeat(100)])
      expect((await enter({ second_step, code: typed })).statusCode, typed).toBe(401);
    for (let nth = 5; nth < 9; nth += 1) await enter({ second_step, code: 'é23456' });
    expect((await enter({ second_step, code: fullWidth(code()) })).statusCode).toBe(303);
    expect((await enter({ second_step, code: 'é23456' })).statusCode).toBe(401);
    expect((await enter({ second_step, code: 'é23456' })).statusCode).toBe(429);
    expect((await browser.send(`${PATH}/disable`, { proof: 'é23456' })).statusCode).toBe(400);
    clock.advance(STEP);
    expect((await browser.send(`${PATH}/disable`, { proof: fullWidth(code()) })).statusCode).toBe(303);
    const { body } = await browser.get(PATH);
    const set = (typed: string) => browser.send(PATH, { proposal: hidden(body, 'proposal'), code: typed });
    expect((await set('é23456')).statusCode).toBe(400);
    expect((await set(fullWidth(codeOf(secretIn(body))))).statusCode).toBe(201);
  });

  it('does not begin by the password alone in a process of the release before', async () => {
    const { user } = await withFactor();
    const { cookie } = await loggedIn(api, user);
    expect(await isIn(cookie)).toBe(false);
  });
});

describe('a second factor that is set up', () => {
  it('is turned off with the password or a code, and with nothing else', async () => {
    const one = await withFactor();
    const wrong = await one.browser.send(`${PATH}/disable`, { proof: 'wrong' });
    expect(wrong.statusCode).toBe(400);
    const off = await one.browser.send(`${PATH}/disable`, { proof: PASSWORD });
    expect(off.headers.location).toBe('/dashboard/account');
    expect((await logIn(api, one.user.name)).statusCode).toBe(303);
    const other = await withFactor();
    expect((await other.browser.send(`${PATH}/disable`, { proof: other.code() })).statusCode).toBe(303);
    expect((await logIn(api, other.user.name)).statusCode).toBe(303);
  });

  it('has its recovery codes made anew, which ends the earlier ones', async () => {
    const { user, browser, recoveryCodes } = await withFactor();
    const made = await browser.send(`${PATH}/recovery-codes`, { proof: PASSWORD });
    const fresh = codesIn(made.body);
    expect([made.statusCode, fresh.length]).toEqual([201, 10]);
    const second_step = await firstStep(user);
    expect((await enter({ second_step, code: recoveryCodes[0] ?? '' })).statusCode).toBe(401);
    expect((await enter({ second_step, code: fresh[0] ?? '' })).statusCode).toBe(303);
  });

  it('is recorded with who did it', async () => {
    const { user, browser } = await withFactor();
    await browser.send(`${PATH}/recovery-codes`, { proof: PASSWORD });
    await browser.send(`${PATH}/disable`, { proof: PASSWORD });
    const told = [];
    for await (const event of api.runtime.store.readStream(`team-${key.partner_id}`)) {
      if ((event.data as { user_id?: string }).user_id === user.user_id) told.push(event);
    }
    expect(told.map(({ type }) => type)).toEqual([
      'partners.SecondFactorEnabled.v1',
      'partners.RecoveryCodesRenewed.v1',
      'partners.SecondFactorDisabled.v1',
    ]);
    for (const { metadata } of told) expect(metadata.user_id).toBe(user.user_id);
  });
});

describe('a team that requires a second factor', () => {
  it('leads a user without one to the set-up before anything else, and lets the user go on then', async () => {
    const own = await api.key();
    const owner = await withFactor(own.partner_id);
    const user = await makeUser(api, own.partner_id, { role: 'member' });
    const browser = await loggedIn(api, user);
    expect((await browser.get('/trackers')).statusCode).toBe(200);
    expect((await owner.browser.send('/team/second-factor', { required: 'yes' })).statusCode).toBe(303);
    for (const path of ['', '/trackers', '/account', '/billing.csv']) {
      expect((await browser.get(path)).headers.location, path).toBe(`/dashboard${PATH}`);
    }
    const { body } = await browser.get(PATH);
    expect(body).toContain('require a second factor');
    const csrf = hidden(body, 'csrf');
    const send = (path: string, form: object) =>
      browse(api, 'POST', `/dashboard${path}`, {
        cookie: browser.cookie,
        form: { csrf, proof: PASSWORD, ...form },
      });
    expect((await send('/trackers', { name: 'sneaked in' })).headers.location).toBe(`/dashboard${PATH}`);
    const set = await send(PATH, { proposal: hidden(body, 'proposal'), code: codeOf(secretIn(body)) });
    expect(set.statusCode).toBe(201);
    expect((await browser.get('/trackers')).statusCode).toBe(200);
    expect((await owner.browser.get('/team')).body).toContain('Stop requiring it');
  });

  it('lets a user with a first password change that first', async () => {
    const own = await api.key();
    const owner = await withFactor(own.partner_id);
    await owner.browser.send('/team/second-factor', { required: 'yes' });
    const fresh = await loggedIn(api, await makeUser(api, own.partner_id, { isFirst: true }));
    expect((await fresh.get(PATH)).headers.location).toBe('/dashboard/password');
  });
});
