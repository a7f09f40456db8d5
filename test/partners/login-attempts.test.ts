import { argon2Sync, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { userIdOf } from '../../commands/partners/manage-user.ts';
import { MINUTE } from '../../domain/kernel/time.ts';
import { masterKeyFrom } from '../../platform/crypto/master-key.ts';
import { createRateLimiter } from '../../platform/limits/rate-limit.ts';
import { createDashboardLogins, type DashboardLogins } from '../../processors/partners/log-in.ts';
import { createLoginLimits, type LoginLimits } from '../../processors/partners/login-limits.ts';
import { createLogins } from '../../processors/partners/logins.ts';
import { setPassword } from '../../processors/partners/passwords.ts';
import { createSecondFactors, type SecondFactors } from '../../processors/partners/second-factor.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

const PASSWORD = 'three wise words';
const unpadded = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '');
/** A usual hash takes 30 ms. */
const nonce = Buffer.alloc(16);
const COST = { memory: 8, passes: 1, parallelism: 1 };
const HASH = `$argon2id$v=19$m=8,t=1,p=1$${unpadded(nonce)}$${unpadded(
  argon2Sync('argon2id', { ...COST, message: PASSWORD, nonce, tagLength: 32 }),
)}`;

const digest = (text: string) => `signed(${text})`.replaceAll(/[ .]/g, '_');

let stack: TestStack;
let logins: DashboardLogins;
let limits: LoginLimits;
let factors: SecondFactors;
beforeAll(async () => {
  stack = await startTestStack();
  limits = createLoginLimits(createRateLimiter({ ...stack, alone: () => true }));
  factors = createSecondFactors({ ...stack, master: masterKeyFrom(Buffer.alloc(32)), digest });
  logins = createDashboardLogins({ ...stack, limits, logins: createLogins(stack), factors, digest });
});
afterAll(() => stack.close());
// Past the window that wrong passwords are counted in.
beforeEach(() => stack.clock.advance(16 * MINUTE));

const aUser = async () => {
  const name = `user ${randomUUID()}`;
  const userId = userIdOf(name);
  await stack.rows(
    `insert into read.user_account (user_id, partner_id, name, created_at) values ($1, $2, $3, now())`,
    [userId, randomUUID(), name],
  );
  await setPassword(stack.pool, { userId, hash: HASH, isFirst: false, at: stack.clock.now() });
  return { name, userId };
};

interface Tries {
  readonly name: string | (() => string);
  readonly times: number;
  readonly network?: string | (() => string);
  readonly device?: string | null;
  readonly password?: string;
}

const logIn = ({ name, network = 'home', device = null, password = PASSWORD }: Omit<Tries, 'times'>) =>
  logins.logIn({
    name: typeof name === 'string' ? name : name(),
    network: typeof network === 'string' ? network : network(),
    device,
    password,
    browser: null,
  });

/** Makes tries one after the other, with a wrong password unless one is given. @returns how many were checked */
const checkedOf = async ({ times, password = 'wrong', ...tries }: Tries): Promise<number> => {
  let checked = 0;
  for (let nth = 0; nth < times; nth += 1) {
    const outcome = await logIn({ ...tries, password });
    if (outcome === 'wrong' || 'token' in outcome) checked += 1;
  }
  return checked;
};

/** Has counted so many wrong passwords a moment ago. */
const hasFailed = (rate: string, times: number) =>
  stack.rows(
    `insert into work.rate (name, slot, used, window_ms) values ($1, $2, array_fill(0, array[10]) || $3::integer, $4)
     on conflict (name) do update set used = excluded.used`,
    [`login ${rate}`, Math.floor(stack.clock.now() / (1.5 * MINUTE)), times, 15 * MINUTE],
  );

const isIn = async (tries: Omit<Tries, 'times'>): Promise<boolean> => {
  const outcome = await logIn(tries);
  return outcome !== 'wrong' && 'token' in outcome;
};

const deviceOf = async (tries: Omit<Tries, 'times'>): Promise<string> => {
  const outcome = await logIn(tries);
  if (outcome === 'wrong' || !('device' in outcome)) throw new Error('no login');
  return outcome.device;
};

describe('wrong passwords', () => {
  it('55 of one network lock the user out nowhere else, also where the user never logged in before', async () => {
    const { name } = await aUser();
    expect(await checkedOf({ name, times: 55, network: 'an attacker' })).toBe(10);
    expect(await isIn({ name, network: 'an attacker' })).toBe(false);
    expect(await isIn({ name, network: 'never seen before' })).toBe(true);
  });

  it('are limited to 10 a user and network until 15 minutes have passed, and a refusal says when', async () => {
    const { name } = await aUser();
    expect(await checkedOf({ name, times: 12 })).toBe(10);
    const refused = await logIn({ name });
    expect(refused).toMatchObject({ retryAfter: expect.any(Number) });
    stack.clock.advance((refused as { retryAfter: number }).retryAfter * 1_000);
    expect(await isIn({ name })).toBe(true);
  });

  it('are limited to 100 a network over all users, and store no names beyond those', async () => {
    const network = randomUUID();
    await hasFailed(`from ${network}`, 95);
    expect(await checkedOf({ name: () => randomUUID(), times: 10, network })).toBe(5);
    const rows = await stack.rows(`select count(*)::int as n from work.rate where name like $1`, [
      `login % ${network}`,
    ]);
    expect(rows).toEqual([{ n: 6 }]);
  });

  it('are limited to 1,000 a user over all networks, and not where a device has logged in before', async () => {
    const { name, userId } = await aUser();
    const device = await deviceOf({ name, network: 'the office' });
    await hasFailed(userId, 995);
    expect(await checkedOf({ name, times: 10, network: () => randomUUID() })).toBe(5);
    expect(await isIn({ name, network: 'the office' })).toBe(false);
    expect(await isIn({ name, network: 'the office', device })).toBe(true);
  });

  it('of a device that has logged in before are limited to 10 of its own', async () => {
    const { name } = await aUser();
    const [device, other] = [await deviceOf({ name }), await deviceOf({ name })];
    expect(device).not.toBe(other);
    expect(await checkedOf({ name, times: 12, device })).toBe(10);
    expect(await isIn({ name, device })).toBe(false);
    expect(await isIn({ name, device: other })).toBe(true);
    expect(await isIn({ name })).toBe(true);
  });

  it('of a device cookie that is made up, or is another user’s, count as of no device', async () => {
    const [{ name }, other] = [await aUser(), await aUser()];
    const theirs = await deviceOf(other);
    await checkedOf({ name, times: 10 });
    for (const device of [theirs, '', 'x', `${theirs}x`, `${randomUUID()}.signed`])
      expect(await isIn({ name, device })).toBe(false);
  });
});

it('logins that succeed spend nothing', async () => {
  const { name } = await aUser();
  expect(await checkedOf({ name, times: 25, password: PASSWORD })).toBe(25);
  expect(await checkedOf({ name, times: 12 })).toBe(10);
});

it('a device keeps its cookie over logins', async () => {
  const { name } = await aUser();
  const device = await deviceOf({ name });
  expect(await deviceOf({ name, device })).toBe(device);
});

it('wrong passwords of a user who is logged in are limited to 10, and the right one spends nothing', async () => {
  const { userId } = await aUser();
  const given = { current: 'wrong', password: PASSWORD, token: '', browser: null };
  expect(await logins.prove(userId, PASSWORD)).toBeNull();
  for (let nth = 0; nth < 5; nth += 1) {
    expect(await logins.prove(userId, 'wrong')).toBe('wrong');
    expect(await logins.changePassword(userId, given, stack.context())).toBe('wrong');
  }
  expect(await logins.prove(userId, PASSWORD)).toBeGreaterThan(0);
  expect(await logins.changePassword(userId, given, stack.context())).toHaveProperty('retryAfter');
});

it('wrong codes are limited to 10 a user and network, 30 a user and 10 a device, and the right one spends nothing', async () => {
  const { name } = await aUser();
  const always = { isSetUp: async () => true, take: async (_: string, code: string) => code === 'right' };
  const deps = { ...stack, limits, logins: createLogins(stack), factors: always, digest };
  const { logIn, enterCode } = createDashboardLogins(deps);
  const home = { network: 'home', device: null, browser: null };
  const begun = await logIn({ ...home, name, password: PASSWORD });
  const secondStep = typeof begun === 'object' && 'secondStep' in begun ? begun.secondStep : '';
  const enter = (code: string, from: Partial<typeof home> | { device: string } = {}) =>
    enterCode({ ...home, secondStep, code, ...from });
  const limited = { retryAfter: expect.any(Number) };
  const right = await enter('right');
  const device = typeof right === 'object' && 'device' in right ? right.device : '';
  for (let nth = 0; nth < 10; nth += 1) expect(await enter('wrong')).toBe('wrong');
  expect(await enter('right')).toEqual(limited);
  for (let nth = 0; nth < 20; nth += 1) expect(await enter('wrong', { network: `n${nth}` })).toBe('wrong');
  expect(await enter('right', { network: 'elsewhere' })).toEqual(limited);
  for (let nth = 0; nth < 10; nth += 1) expect(await enter('wrong', { device })).toBe('wrong');
  expect(await enter('right', { device })).toEqual(limited);
});
