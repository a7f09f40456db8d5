import type pg from 'pg';
import type { CommandContext } from '../../commands/handle.ts';
import { changeUser, userIdOf } from '../../commands/partners/manage-user.ts';
import type { EventStore } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock.ts';
import { createGate, createGates } from '../../platform/gate.ts';
import { hashPassword, isPassword } from '../../platform/passwords.ts';
import { type RateLimiter, retrySeconds } from '../../platform/rate-limit.ts';
import { createLoginNetworks } from './login-networks.ts';
import { LOGIN_RATES, LOGIN_WINDOW, type Logins, passwordOf, replacePassword } from './logins.ts';

/**
 * Login attempts per window: per wider network, beside the networks that users have logged in from, per network, per user and network,
 * per user from networks that are new to the user.
 */
const ATTEMPTS_PER_WIDER_NETWORK = 1_000;
const ATTEMPTS_PER_NETWORK = 100;
const ATTEMPTS_PER_USER_AND_NETWORK = 10;
const ATTEMPTS_PER_USER = 50;

/** Attempts from networks that are new to their users that spend rates, which stand in one queue with those of all calls. */
const ATTEMPTS_AT_ONCE = { room: 8, waiting: 64, patienceMs: 2_000 };

/** Password checks of a wider network: a quarter of the queue of all. Others wait here, where they leave it to other networks. */
const CHECKS_OF_NETWORK = { room: 8, waiting: 32 };
/** The same of a user who is logged in, or from networks that the user has logged in from, of which it may have many. */
const CHECKS_OF_USER = { room: 2, waiting: 8 };

/** Keyed digests of a visitor's network, and of the IPv4 /24 or IPv6 /48 around it. */
export interface LoginNetworks {
  readonly own: string;
  readonly wider: string;
}

export interface DashboardLoginDeps {
  readonly pool: pg.Pool;
  readonly store: EventStore;
  readonly clock: Clock;
  readonly limiter: RateLimiter;
  readonly logins: Logins;
}

/** Logs users into the dashboard by name and password. A network is a keyed digest, because rate names are stored. */
export const createDashboardLogins = ({ pool, store, clock, limiter, logins }: DashboardLoginDeps) => {
  const networks = createLoginNetworks({ pool, clock });
  const checks = createGates(CHECKS_OF_NETWORK);
  const attempts = createGate(ATTEMPTS_AT_ONCE);
  const checksFromKnown = createGates(CHECKS_OF_USER);
  return {
    /**
     * Counts an attempt. Checks the networks first, which bounds the rate names that one network writes, and one visitor with a
     * /48, whose counts are kept for half an hour.
     * @returns seconds until the next attempt is allowed; null: this one is
     * @throws WorkRefused where too many attempts are made at once
     */
    admit: async (userId: string, { own, wider }: LoginNetworks): Promise<number | null> => {
      const isKnown = await networks.isKnown(userId, own);
      const spend = async (): Promise<number | null> => {
        for (const [name, ceiling] of ratesOf(userId, { own, wider }, isKnown)) {
          const verdict = await limiter.admit(`${LOGIN_RATES}${name}`, ceiling, LOGIN_WINDOW);
          if (verdict !== null) return retrySeconds(verdict);
        }
        return null;
      };
      return isKnown ? spend() : checks.enter(wider, () => attempts.enter(spend));
    },

    /** Begins a login. @returns its token; null if name and password match no user */
    logIn: async (name: string, password: string, { own, wider }: LoginNetworks): Promise<string | null> => {
      const userId = userIdOf(name);
      const known = await passwordOf(pool, userId);
      const isKnown = await networks.isKnown(userId, own);
      const isRight = isKnown
        ? await checksFromKnown.enter(userId, () => isPassword(password, known, true))
        : await checks.enter(wider, () => isPassword(password, known));
      if (!isRight || known === null) return null;
      const token = await logins.begin(userId, known);
      if (token !== null) await networks.remember(userId, own);
      return token;
    },

    /** Ends every login of the user and begins one. @returns its token; null if `current` is not the password */
    changePassword: async (
      userId: string,
      current: string,
      password: string,
      context: CommandContext,
    ): Promise<string | null> => {
      const known = await passwordOf(pool, userId);
      const isRight = await checksFromKnown.enter(userId, () => isPassword(current, known, true));
      if (!isRight || known === null) return null;
      const hash = await hashPassword(password);
      // If an operator has reset the password meanwhile, that one stays.
      const next = { userId, hash, isFirst: false, at: clock.now() };
      if (!(await replacePassword(pool, known, next))) return null;
      await changeUser(store, 'ChangePassword', userId, context);
      return logins.begin(userId, hash);
    },
  };
};

/** Rates of an attempt, in their order. Those from other networks do not lock users out of networks that they have logged in from. */
const ratesOf = (userId: string, { own, wider }: LoginNetworks, isKnown: boolean): [string, number][] => {
  const always: [string, number][] = [
    [`from ${own}`, ATTEMPTS_PER_NETWORK],
    [`${userId} ${own}`, ATTEMPTS_PER_USER_AND_NETWORK],
  ];
  if (isKnown) return always;
  return [[`around ${wider}`, ATTEMPTS_PER_WIDER_NETWORK], ...always, [userId, ATTEMPTS_PER_USER]];
};
