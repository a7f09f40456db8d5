import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { changePartner } from '../../commands/partners/manage-partner.ts';
import { acceptInvitation } from '../../commands/partners/manage-team.ts';
import { HOUR, MINUTE } from '../../domain/kernel/time.ts';
import type { Role } from '../../domain/partners/events.ts';
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
let owner: TestUser;
let browser: LoggedIn;

beforeAll(async () => {
  api = await startApi({ clock });
});
afterAll(() => api.close());
beforeEach(async () => {
  clock.advance(16 * MINUTE);
  key = await api.key();
  owner = await makeUser(api, key.partner_id);
  browser = await loggedIn(api, owner);
});

const WORDS = 'four words are better';

/** Makes an invitation. @returns the path of its link */
const invite = async (role: Role = 'member', note = 'Ada, sales'): Promise<string> => {
  const made = await browser.send('/team/invitations', { role, note });
  expect(made.statusCode, made.body).toBe(201);
  const link = /aria-label="Link"><code>([^<]+)</.exec(made.body)?.[1] ?? '';
  expect(link).toMatch(/^http:\/\/doorplate\.test\/dashboard\/invitations\/[\w-]{43}$/);
  return new URL(link).pathname;
};
const join = (path: string, name = `user ${randomUUID()}`, password = WORDS) =>
  browse(api, 'POST', path, { form: { name, password, again: password } });
const open = (path: string) => browse(api, 'GET', path);

describe('an invitation', () => {
  it('makes its bearer a user with its role, who is logged in', async () => {
    const path = await invite('read-only');
    expect((await open(path)).body).toContain('with the role read-only');
    const name = `user ${randomUUID()}`;
    const joined = await join(path, name);
    expect(joined.headers.location).toBe('/dashboard?said=logged-in');
    const cookie = cookieOf(joined) ?? '';
    expect((await browse(api, 'GET', '/dashboard', { cookie })).statusCode).toBe(200);
    expect((await browse(api, 'GET', '/dashboard/team', { cookie })).body).toContain(
      'Owners change the team',
    );
    expect((await logIn(api, name, WORDS)).statusCode).toBe(303);
    expect((await browser.get('/team')).body).toContain(name);
  });

  it('may require a second factor of the one who joins, and of nobody else', async () => {
    const form = { role: 'member', note: 'Ben', second_factor: 'required' };
    const made = await browser.send('/team/invitations', form);
    const link = /aria-label="Link"><code>([^<]+)</.exec(made.body)?.[1] ?? '';
    expect((await browser.get('/team')).body).toContain('member, with a second factor');
    const cookie = cookieOf(await join(new URL(link).pathname)) ?? '';
    const led = await browse(api, 'GET', '/dashboard', { cookie });
    expect([led.statusCode, led.headers.location]).toEqual([303, '/dashboard/account/second-factor']);
    const other = cookieOf(await join(await invite('member'))) ?? '';
    expect((await browse(api, 'GET', '/dashboard', { cookie: other })).statusCode).toBe(200);
  });

  it('offers no second factor of its own while a process of an earlier release runs', async () => {
    const offers = async () => (await browser.get('/team/invite')).body.includes('name="second_factor"');
    expect(await offers()).toBe(true);
    const [id, earlier] = [randomUUID(), await api.sql.connect()];
    await earlier.query(`set application_name = 'doorplate heartbeat ${id}'`);
    await api.sql.query(
      `insert into work.process (process_id, role, release, seen_at) values ($1, 'all', '0.2.0', now())`,
      [id],
    );
    expect(await offers()).toBe(false);
    const refused = await browser.send('/team/invitations', { role: 'member', second_factor: 'required' });
    expect([refused.statusCode, refused.body.includes('earlier_release')]).toEqual([409, true]);
    await api.sql.query('delete from work.process where process_id = $1', [id]);
    earlier.release(true);
  });

  it('is listed without its link until it is used', async () => {
    const path = await invite('member', 'Ben, finance');
    const { body } = await browser.get('/team');
    expect(body).toContain('Ben, finance');
    expect(body).not.toContain(path);
    await join(path);
    expect((await browser.get('/team')).body).not.toContain('Ben, finance');
  });

  it('has one winner when two browsers use it at once', async () => {
    const path = await invite();
    const names = [`user ${randomUUID()}`, `user ${randomUUID()}`];
    const outcomes = await Promise.all(names.map((name) => join(path, name)));
    expect(outcomes.map(({ statusCode }) => statusCode).toSorted()).toEqual([303, 410]);
    const logins = await Promise.all(names.map((name) => logIn(api, name, WORDS)));
    expect(logins.map(({ statusCode }) => statusCode).toSorted()).toEqual([303, 401]);
  });

  it('expires after 72 hours, and says what to do then', async () => {
    const path = await invite();
    clock.advance(72 * HOUR - 1);
    expect((await open(path)).statusCode).toBe(200);
    clock.advance(1);
    const late = await open(path);
    expect([late.statusCode, late.body.includes('Ask an owner of the team')]).toEqual([410, true]);
    expect((await join(path)).statusCode).toBe(410);
  });

  it('is withdrawn by an owner', async () => {
    const path = await invite();
    const id = /name="invitation_id" value="([^"]+)"/.exec((await browser.get('/team')).body)?.[1] ?? '';
    const withdrawn = await browser.send('/team/withdraw', { invitation_id: id });
    expect(withdrawn.headers.location).toBe('/dashboard/team');
    expect((await open(path)).body).toContain('was withdrawn');
    expect((await join(path)).statusCode).toBe(410);
  });

  it('is not withdrawn by the owner of another team', async () => {
    const path = await invite();
    const id = /name="invitation_id" value="([^"]+)"/.exec((await browser.get('/team')).body)?.[1] ?? '';
    const stranger = await loggedIn(api, await makeUser(api, (await api.key()).partner_id));
    expect((await stranger.send('/team/withdraw', { invitation_id: id })).statusCode).toBe(404);
    expect((await open(path)).statusCode).toBe(200);
  });

  it('is accepted by nobody while the partner is suspended, and again once it is resumed', async () => {
    const path = await invite();
    const change = async (type: 'SuspendPartner' | 'ResumePartner') => {
      const context = { correlationId: 'a test', causationId: 'a test', at: clock.now() };
      await changePartner(api.runtime.store, type, key.partner_id, context);
      await api.caughtUp();
    };
    await change('SuspendPartner');
    for (const answer of [await open(path), await join(path)])
      expect([answer.statusCode, answer.body.includes('account is suspended')]).toEqual([403, true]);
    await change('ResumePartner');
    expect((await join(path)).statusCode).toBe(303);
  });

  it('is not used up by a name that is taken, or by a password that is weak', async () => {
    const path = await invite();
    const taken = await join(path, owner.name);
    expect([taken.statusCode, taken.body.includes('name is taken')]).toEqual([409, true]);
    for (const password of ['short', 'passwordpassword', 'aaaaaaaaaaaa']) {
      expect((await join(path, `user ${randomUUID()}`, password)).statusCode, password).toBe(400);
    }
    expect((await join(path, ' '.repeat(3))).statusCode).toBe(400);
    expect((await join(path)).statusCode).toBe(303);
  });

  it('does not tell whether another partner has a user of a name', async () => {
    const path = await invite();
    const stranger = await makeUser(api, (await api.key()).partner_id);
    const [taken, refused] = [await join(path, stranger.name), await join(path, 'ada\u200b')];
    const without = ({ statusCode, body }: typeof taken) => [statusCode, body.replace(/value="[^"]*"/g, '')];
    expect(without(taken)).toEqual(without(refused));
    expect([taken.statusCode, taken.body.includes('taken')]).toEqual([400, false]);
    expect((await join(path)).statusCode).toBe(303);
  });

  it('goes on for the same user name where a crash ended it before there was a password', async () => {
    const path = await invite();
    const { rows } = await api.sql.query('select invitation_id from read.invitation where partner_id = $1', [
      key.partner_id,
    ]);
    const name = `user ${randomUUID()}`;
    const context = { correlationId: 'a test', causationId: 'a test', at: clock.now() };
    const { invitation_id } = rows[0];
    const given = { partner_id: key.partner_id, invitation_id, role: 'member', name } as const;
    expect((await acceptInvitation(api.runtime.store, given, context)).ok).toBe(true);
    await api.caughtUp();
    expect((await join(path)).statusCode).toBe(410);
    expect((await join(path, name)).statusCode).toBe(303);
    expect((await join(path, name)).statusCode).toBe(410);
  });

  it.each(['x', 'a'.repeat(43), encodeURIComponent('a\u0000b')])('has no link like %s', async (token) => {
    const none = await open(`/dashboard/invitations/${token}`);
    expect([none.statusCode, none.body.includes('copied the whole link')]).toEqual([404, true]);
  });

  it('is accepted by no form of another site', async () => {
    const path = await invite();
    const form = { name: `user ${randomUUID()}`, password: WORDS, again: WORDS };
    const answer = await browse(api, 'POST', path, { form, headers: { origin: 'https://evil.example' } });
    expect(answer.statusCode).toBe(403);
    expect((await open(path)).statusCode).toBe(200);
  });
});

describe('the team', () => {
  it('shows who was here when, and finds users by name', async () => {
    const other = await makeUser(api, key.partner_id, { role: 'member', name: `Zoë ${randomUUID()}` });
    await loggedIn(api, other);
    const stranger = await makeUser(api, (await api.key()).partner_id);
    const { body } = await browser.get('/team');
    for (const text of [owner.name, other.name, '2 users', 'now']) expect(body).toContain(text);
    expect(body).not.toContain(stranger.name);
    const found = (await browser.get('/team?q=zoE%CC%88')).body;
    expect(found).toContain(`>${other.name}<`);
    expect(found).not.toContain(`>${owner.name}</a>`);
    expect((await browser.get('/team?q=nobody')).body).toContain('Nothing matches');
  });

  it('has a role changed, which holds from the next page on', async () => {
    const other = await makeUser(api, key.partner_id, { role: 'read-only' });
    const theirs = await loggedIn(api, other);
    expect((await theirs.send('/keys', { name: '' })).statusCode).toBe(403);
    const changed = await browser.send(`/team/${other.user_id}/role`, { role: 'owner' });
    expect(changed.headers.location).toBe('/dashboard/team');
    expect((await theirs.send('/keys', { name: '' })).statusCode).toBe(400);
    expect((await browser.send(`/team/${other.user_id}/role`, { role: 'king' })).statusCode).toBe(400);
  });

  it('loses a user after a question, with all logins and the password', async () => {
    const other = await makeUser(api, key.partner_id, { role: 'member' });
    const theirs = await loggedIn(api, other);
    expect((await browser.get(`/team/${other.user_id}/remove`)).body).toContain('cannot be used again');
    expect((await theirs.get('/account')).statusCode).toBe(200);
    const removed = await browser.send(`/team/${other.user_id}/remove`);
    expect(removed.headers.location).toBe('/dashboard/team');
    expect((await theirs.get('/account')).statusCode).toBe(303);
    expect((await logIn(api, other.name)).statusCode).toBe(401);
    expect((await browser.get('/team')).body).not.toContain(other.name);
    const { rows } = await api.sql.query('select from work.user_password where user_id = $1', [
      other.user_id,
    ]);
    expect(rows).toEqual([]);
  });

  it('has a removal completed by a repeat where a crash ended it', async () => {
    const other = await makeUser(api, key.partner_id, { role: 'member' });
    const { user_id, partner_id } = other;
    const removed = { user_id, partner_id, role: 'member', removed_at: new Date(clock.now()).toISOString() };
    const metadata = { $correlationId: 'a test', $causationId: 'a test', at: removed.removed_at };
    await api.runtime.store.append(`team-${partner_id}`, 'no_stream', [
      { id: randomUUID(), type: 'partners.MemberRemoved.v1', data: removed, metadata },
    ]);
    await api.caughtUp();
    expect((await logIn(api, other.name)).statusCode).toBe(401);
    expect((await browser.send(`/team/${user_id}/remove`)).statusCode).toBe(303);
    const { rows } = await api.sql.query(
      `select (select count(*)::int from work.user_password where user_id = $1) as passwords,
              (select removed_at is not null from read.user_account where user_id = $1) as removed`,
      [user_id],
    );
    expect(rows).toEqual([{ passwords: 0, removed: true }]);
  });

  it('cannot reset their own password and second factor there, which a stolen login could use', async () => {
    const owner = await makeUser(api, key.partner_id, { role: 'owner' });
    const theirs = await loggedIn(api, owner);
    const refused = await theirs.send(`/team/${owner.user_id}/reset-password`, { second_factor: 'off' });
    expect(refused.statusCode).toBe(409);
    expect((await theirs.get('/account')).statusCode).toBe(200);
  });

  it('has a password reset, which is shown once and changed with the first login', async () => {
    const other = await makeUser(api, key.partner_id, { role: 'member' });
    const theirs = await loggedIn(api, other);
    const reset = await browser.send(`/team/${other.user_id}/reset-password`);
    const password = /aria-label="First password"><code>([^<]+)</.exec(reset.body)?.[1] ?? '';
    expect(reset.statusCode).toBe(201);
    expect((await theirs.get('/account')).statusCode).toBe(303);
    expect((await logIn(api, other.name)).statusCode).toBe(401);
    const begun = await logIn(api, other.name, password);
    expect(begun.statusCode).toBe(303);
    const first = await browse(api, 'GET', '/dashboard', { cookie: cookieOf(begun) ?? '' });
    expect(first.headers.location).toBe('/dashboard/password');
  });

  it('has no user of another partner', async () => {
    const stranger = await makeUser(api, (await api.key()).partner_id);
    for (const path of ['', '/role', '/remove', '/reset-password']) {
      const answer = await (path === ''
        ? browser.get(`/team/${stranger.user_id}`)
        : browser.send(`/team/${stranger.user_id}${path}`, { role: 'member' }));
      expect(answer.statusCode, path).toBe(404);
    }
    expect((await browser.get('/team/no-such-user')).statusCode).toBe(404);
    expect((await logIn(api, stranger.name, PASSWORD)).statusCode).toBe(303);
  });

  it('has each change recorded with who did it to whom', async () => {
    const other = await makeUser(api, key.partner_id, { role: 'member' });
    await invite();
    await browser.send(`/team/${other.user_id}/role`, { role: 'read-only' });
    await browser.send('/team/second-factor', { required: 'yes' });
    const told = [];
    for await (const event of api.runtime.store.readStream(`team-${key.partner_id}`)) told.push(event);
    expect(told.map(({ type }) => type)).toEqual([
      'partners.InvitationMade.v1',
      'partners.RoleChanged.v1',
      'partners.SecondFactorRequired.v1',
    ]);
    expect(told[1]?.data).toMatchObject({ user_id: other.user_id, before: 'member', role: 'read-only' });
    for (const { metadata } of told) {
      expect(metadata).toMatchObject({ user_id: owner.user_id, partner_id: key.partner_id });
    }
  });
});

describe('an account', () => {
  it('lists its logins with their browsers, and ends one or all others', async () => {
    const agent = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
    const begun = await logIn(api, owner.name, PASSWORD, { headers: { 'user-agent': agent } });
    const theirs = cookieOf(begun) ?? '';
    const third = await loggedIn(api, owner);
    const { body } = await browser.get('/account');
    for (const text of ['Firefox on Linux', 'Unknown browser', 'this browser', '3 logins'])
      expect(body).toContain(text);
    const row = body.slice(body.indexOf('Firefox on Linux'));
    const login_id = /name="login_id" value="([^"]+)"/.exec(row)?.[1] ?? '';
    const ended = await browser.send('/account/end-login', { login_id });
    expect(ended.headers.location).toBe('/dashboard/account');
    const isIn = async (cookie: string) =>
      (await browse(api, 'GET', '/dashboard/account', { cookie })).statusCode === 200;
    expect([await isIn(theirs), await isIn(third.cookie)]).toEqual([false, true]);
    await browser.send('/account/end-other-logins');
    expect([await isIn(third.cookie), await isIn(browser.cookie)]).toEqual([false, true]);
  });

  it('ends no login of another user', async () => {
    const other = await makeUser(api, key.partner_id);
    const theirs = await loggedIn(api, other);
    const { rows } = await api.sql.query(
      `select left(encode(digest, 'hex'), 16) as login_id from work.login where user_id = $1`,
      [other.user_id],
    );
    await browser.send('/account/end-login', { login_id: rows[0].login_id });
    expect((await theirs.get('/account')).statusCode).toBe(200);
  });

  it('has a time zone, in which the pages show times', async () => {
    await browser.send('/account/time-zone', { time_zone: 'Asia/Tokyo' });
    const { body } = await browser.get('/account');
    expect(body).toContain('list="zones" value="Asia/Tokyo"');
    expect(body).toContain('GMT+9');
    for (const time_zone of ['Mars/Olympus', '+01:00', 'Etc/GMT+5', '']) {
      const wrong = await browser.send('/account/time-zone', { time_zone });
      expect([wrong.statusCode, wrong.body.includes('Choose one of the list')]).toEqual([400, true]);
    }
    expect((await browser.get('/account')).body).toContain('list="zones" value="Asia/Tokyo"');
    for (const time_zone of ['Europe/Kyiv', 'Europe/Kiev', 'europe/kyiv']) {
      await browser.send('/account/time-zone', { time_zone });
      expect((await browser.get('/account')).body).toContain('list="zones" value="Europe/Kyiv"');
    }
  });
});
