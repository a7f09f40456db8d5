/**
 * Logs users into the dashboard by name and password, and limits the wrong passwords. A successful login gives the browser a signed
 * device cookie. An attempt that shows the cookie of its user spends a rate of its own, so that nobody else can lock that device out.
 */
import { randomUUID, timingSafeEqual } from 'node:crypto';
import type pg from 'pg';
import type { CommandContext } from '../../commands/handle.ts';
import { changeUser, userIdOf } from '../../commands/partners/manage-user.ts';
import { MINUTE } from '../../domain/kernel/time.ts';
import type { EventStore } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { hashPassword, isPassword } from '../../platform/crypto/passwords.ts';
import { type RateLimiter, retrySeconds } from '../../platform/limits/rate-limit.ts';
import { type Logins, passwordOf, replacePassword } from './logins.ts';

/** Wrong passwords per window. */
const WINDOW_MS = 15 * MINUTE;
const WRONG_PER_NETWORK = 100;
const WRONG_PER_USER_AND_NETWORK = 10;
const WRONG_PER_USER = 1_000;
const WRONG_PER_DEVICE = 10;

export interface LoginAttempt {
  readonly name: string;
  readonly password: string;
  /** Keyed digest of the visitor's network, because rate names are stored. */
  readonly network: string;
  /** The device cookie; null: none was sent. */
  readonly device: string | null;
}

export type LoginOutcome =
  | { readonly token: string; readonly device: string }
  /** Too many wrong passwords: seconds until the next attempt is allowed. */
  | { readonly retryAfter: number }
  | 'wrong';

export interface DashboardLogins {
  /** Begins a login. @throws WorkRefused while too many passwords are checked */
  logIn(attempt: LoginAttempt): Promise<LoginOutcome>;
  /** Counts a try of the current password by a user who is logged in. @returns seconds to wait; null: this one is allowed */
  admitPasswordChange(userId: string): Promise<number | null>;
  /** Ends every login of the user and begins one. @returns its token; null if `current` is not the password */
  changePassword(
    userId: string,
    current: string,
    password: string,
    context: CommandContext,
  ): Promise<string | null>;
}

export interface DashboardLoginDeps {
  readonly pool: pg.Pool;
  readonly store: EventStore;
  readonly clock: Clock;
  readonly limiter: Pick<RateLimiter, 'admit' | 'giveBack'>;
  readonly logins: Logins;
  /** Returns a keyed digest. */
  readonly digest: (text: string) => string;
}

type Rate = readonly [name: string, ceiling: number, windowMs: number];

const rate = (name: string, ceiling: number): Rate => [`login ${name}`, ceiling, WINDOW_MS];

export function createDashboardLogins(deps: DashboardLoginDeps): DashboardLogins {
  const { pool, store, clock, limiter, logins } = deps;

  /** Takes one of each rate, or of none. @returns seconds to wait; null: taken */
  async function take(rates: readonly Rate[]): Promise<number | null> {
    for (const [nth, one] of rates.entries()) {
      const verdict = await limiter.admit(...one);
      if (verdict === null) continue;
      await giveBack(rates.slice(0, nth));
      return retrySeconds(verdict);
    }
    return null;
  }

  async function giveBack(rates: readonly Rate[]): Promise<void> {
    for (const one of rates) await limiter.giveBack(...one);
  }

  /** Signed for one user. */
  const deviceOf = (userId: string, id: string): string =>
    `${id}.${deps.digest(`device ${id} of ${userId}`)}`;

  /** Returns the id in a device cookie of this user; null: it is not one. */
  function deviceId(userId: string, cookie: string | null): string | null {
    const [id = ''] = (cookie ?? '').split('.', 1);
    const [given, expected] = [cookie ?? '', deviceOf(userId, id)].map((text) => Buffer.from(text)) as [
      Buffer,
      Buffer,
    ];
    return given.length === expected.length && timingSafeEqual(given, expected) ? id : null;
  }

  function ratesOf(userId: string, network: string, device: string | null): Rate[] {
    if (device !== null) return [rate(`device ${device}`, WRONG_PER_DEVICE)];
    return [
      rate(`from ${network}`, WRONG_PER_NETWORK),
      rate(`${userId} ${network}`, WRONG_PER_USER_AND_NETWORK),
      rate(userId, WRONG_PER_USER),
    ];
  }

  const changesOf = (userId: string): Rate => rate(`change of ${userId}`, WRONG_PER_DEVICE);

  /** Gives the rates back unless the password was checked and wrong. */
  async function checked(rates: readonly Rate[], check: () => Promise<boolean>): Promise<boolean> {
    let isWrong = false;
    try {
      const isRight = await check();
      isWrong = !isRight;
      return isRight;
    } finally {
      if (!isWrong) await giveBack(rates);
    }
  }

  return {
    logIn: async ({ name, password, network, device }) => {
      const userId = userIdOf(name);
      const knownDevice = deviceId(userId, device);
      const rates = ratesOf(userId, network, knownDevice);
      const retryAfter = await take(rates);
      if (retryAfter !== null) return { retryAfter };
      const hash = await passwordOf(pool, userId);
      const isRight = await checked(rates, () => isPassword(password, hash));
      const token = isRight && hash !== null ? await logins.begin(userId, hash) : null;
      return token === null ? 'wrong' : { token, device: deviceOf(userId, knownDevice ?? randomUUID()) };
    },

    admitPasswordChange: (userId) => take([changesOf(userId)]),

    changePassword: async (userId, current, password, context) => {
      const known = await passwordOf(pool, userId);
      const isRight = await checked([changesOf(userId)], () => isPassword(current, known));
      if (!isRight || known === null) return null;
      const hash = await hashPassword(password);
      // If an operator has reset the password meanwhile, that one stays.
      const next = { userId, hash, isFirst: false, at: clock.now() };
      if (!(await replacePassword(pool, known, next))) return null;
      await changeUser(store, 'ChangePassword', userId, context);
      return logins.begin(userId, hash);
    },
  };
}
