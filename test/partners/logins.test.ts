import { randomUUID } from 'node:crypto';
import { TOTP } from 'otpauth';
import type pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { masterKeyFrom } from '../../platform/crypto/master-key.ts';
import { createLogins } from '../../processors/partners/logins.ts';
import { forgetUser, setPassword } from '../../processors/partners/passwords.ts';
import { createSecondFactors } from '../../processors/partners/second-factor.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';
import { until } from '../support/until.ts';

let stack: TestStack;
let pool: pg.Pool;
beforeAll(async () => {
  stack = await startTestStack();
  pool = stack.pool;
});
afterAll(() => stack.close());

const clock = { now: () => 1_000_000 };
const passwordOf = (userId: string, hash: string) => ({ userId, hash, isFirst: false, at: clock.now() });

/** A user whose password has the hash `old`. */
const aUser = async (): Promise<string> => {
  const userId = randomUUID();
  await setPassword(pool, passwordOf(userId, 'old'));
  return userId;
};
const waiting = async (): Promise<boolean> => {
  const { rows } = await pool.query(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rows.length > 0;
};

it('a login in progress does not begin when the password was reset meanwhile', async () => {
  const userId = await aUser();
  const logins = createLogins({ pool, clock });
  await setPassword(pool, passwordOf(userId, 'new'));
  expect(await logins.begin(userId, 'old')).toBeNull();
  expect(await logins.begin(userId, 'new')).not.toBeNull();
  await forgetUser(pool, userId);
  expect(await logins.begin(userId, 'new')).toBeNull();
  expect((await logins.list(userId, '')).length).toBe(0);
});

it('a login that begins during a password reset ends with it', async () => {
  const userId = await aUser();
  const logins = createLogins({ pool, clock });
  const client = await pool.connect();
  await client.query('begin');
  await client.query('select from work.user_password where user_id = $1 for share', [userId]);
  const resetting = setPassword(pool, passwordOf(userId, 'new'));
  await until('the reset waits', waiting);
  await client.query(
    `insert into work.login (digest, user_id, began_at, used_at) values ('\\x01', $1, $2, $2)`,
    [userId, new Date(clock.now())],
  );
  await client.query('commit');
  client.release();
  await resetting;
  expect((await logins.list(userId, '')).length).toBe(0);
});

it('a password change neither undoes a reset nor ends later logins', async () => {
  const userId = await aUser();
  const logins = createLogins({ pool, clock });
  await setPassword(pool, passwordOf(userId, 'reset'));
  const token = (await logins.begin(userId, 'reset')) ?? '';
  await logins.begin(userId, 'reset');
  const change = (known: string, by = token) =>
    logins.changePassword(passwordOf(userId, 'changed'), known, { token: by, browser: null });
  expect(await change('old')).toBeNull();
  expect(await change('reset', 'a login that has ended')).toBeNull();
  expect((await logins.list(userId, '')).length).toBe(2);
  const next = await change('reset');
  expect((await logins.list(userId, next ?? '')).map(({ is_this }) => is_this)).toEqual([true]);
});

const factorOf = async (userId: string): Promise<Record<string, boolean>> => {
  const { rows } = await pool.query(
    'select browser, with_second_factor from work.login where user_id = $1 order by browser',
    [userId],
  );
  return Object.fromEntries(rows.map(({ browser, with_second_factor }) => [browser, with_second_factor]));
};

const byPassword = (browser: string) => ({ browser, withSecondFactor: false });

it('a login by the password alone that begins while a second factor is set up counts as none with it', async () => {
  const userId = await aUser();
  const logins = createLogins({ pool, clock });
  const factors = createSecondFactors({
    pool,
    clock,
    master: masterKeyFrom(Buffer.alloc(32)),
    digest: String,
  });
  const token = (await logins.begin(userId, 'old', byPassword('this'))) ?? '';
  await logins.begin(userId, 'old', byPassword('other'));
  const { secret, proposal } = await factors.propose(userId, 'anna', 'a login');
  const code = new TOTP({ secret }).generate({ timestamp: clock.now() });
  const client = await pool.connect();
  await client.query('begin');
  await client.query(`select from work.login where user_id = $1 and browser = 'other' for update`, [userId]);
  const enabling = factors.enable(userId, { proposal, about: 'a login', code, token });
  await until('the set-up waits for a login that it ends', waiting);
  // As a process of another release would.
  await pool.query(
    `insert into work.login (digest, user_id, began_at, used_at, browser) values ('\\x02', $1, $2, $2, 'between')`,
    [userId, new Date(clock.now())],
  );
  await client.query('commit');
  client.release();
  expect(await enabling).toHaveLength(10);
  expect(await factorOf(userId)).toEqual({ this: true, between: false });
});

it('a changed password goes on with a login that has had a second factor only if the one before had', async () => {
  const userId = await aUser();
  const logins = createLogins({ pool, clock });
  const token = (await logins.begin(userId, 'old', byPassword('one'))) ?? '';
  await pool.query(
    `insert into work.second_factor (user_id, secret, last_step, set_at) values ($1, '{}', 0, $2)`,
    [userId, new Date(clock.now())],
  );
  const next = await logins.changePassword(passwordOf(userId, 'new'), 'old', { token, browser: 'one' });
  expect(await factorOf(userId)).toEqual({ one: false });
  await pool.query('update work.login set with_second_factor = true where user_id = $1', [userId]);
  await logins.changePassword(passwordOf(userId, 'newer'), 'new', { token: next ?? '', browser: 'one' });
  expect(await factorOf(userId)).toEqual({ one: true });
});

it.each([
  ['an hour', 3_600_000],
  ['a year', 365 * 86_400_000],
])(
  'a login that a clock ahead by %s began ends twelve idle hours after the correction',
  async (_by, ahead) => {
    const right = 1_000_000;
    const moved = { at: right + ahead, now: () => moved.at };
    const userId = await aUser();
    await pool.query(
      `insert into read.partner (partner_id, name, created_at) values ($1, 'Anna ' || $2, now())`,
      [userId, String(ahead)],
    );
    await pool.query(
      `insert into read.user_account (user_id, partner_id, name, created_at) values ($1, $1, 'anna', now())`,
      [userId],
    );
    const logins = createLogins({ pool, clock: moved });
    const token = (await logins.begin(userId, 'old')) ?? '';
    moved.at = right;
    expect(await logins.find(token)).toMatchObject({ name: 'anna' });
    moved.at = right + 12 * 3_600_000 + 1;
    expect(await logins.find(token)).toBeNull();
  },
);

it('of a user whose role the read model does not have yet is read-only, in UTC', async () => {
  const userId = await aUser();
  await pool.query(`insert into read.partner (partner_id, name, created_at) values ($1, 'Bert', now())`, [
    userId,
  ]);
  await pool.query(
    `insert into read.user_account (user_id, partner_id, name, created_at) values ($1, $1, 'bert', now())`,
    [userId],
  );
  const logins = createLogins({ pool, clock });
  const token = (await logins.begin(userId, 'old')) ?? '';
  expect(await logins.find(token)).toMatchObject({
    role: 'read-only',
    time_zone: 'UTC',
    needs_second_factor: false,
  });
});
