import { createHash, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import type pg from 'pg';
import type { CommandContext } from '../../commands/handle.ts';
import { changeUser, userIdOf } from '../../commands/partners/manage-user.ts';
import { aheadAfter, DAY, HOUR, isAhead, MINUTE } from '../../domain/kernel/time.ts';
import { reportFutureTime } from '../../platform/clock/clock.ts';
import { hashPassword, isPassword } from '../../platform/crypto/passwords.ts';
import { rowLoader } from '../../platform/limits/loaders.ts';
import { type RateLimiter, retrySeconds } from '../../platform/limits/rate-limit.ts';
import { queryWithSynchronousCommit, withSynchronousCommit } from '../../platform/postgres/transactions.ts';
import type { ProcessorDeps } from '../deps.ts';

/** The user of a dashboard session. */
interface LoggedIn {
  readonly user_id: string;
  readonly partner_id: string;
  readonly name: string;
  readonly partner_name: string;
  /** Whether an operator set the password, so that it must be changed first. */
  readonly is_first: boolean;
  readonly time_zone: string;
}

export interface Logins {
  /**
   * Begins a login of a user who has proven the password of this hash.
   * @returns the token for the browser; null if the password has changed meanwhile
   */
  begin(userId: string, hash: string): Promise<string | null>;
  find(token: string): Promise<LoggedIn | null>;
  end(token: string): Promise<void>;
  endAll(userId: string): Promise<void>;
  count(userId: string): Promise<number>;
}

/** Limits of a login: time without use, and total time. */
const IDLE = 12 * HOUR;
const MAX_AGE = 7 * DAY;
/** Ceiling of one user. */
const MAX_LOGINS = 100;

const TOKEN = /^[A-Za-z0-9_-]{43}$/;
const digestOf = (token: string): Buffer => createHash('sha256').update(token).digest();

/** Stores dashboard logins by a digest of their token, so that reading the table does not allow a login. */
export function createLogins(deps: Pick<ProcessorDeps, 'pool' | 'clock'>): Logins {
  const { pool, clock } = deps;
  const findLogin = createLoginReader(deps);
  return {
    begin: async (userId, hash) => {
      const token = randomBytes(32).toString('base64url');
      const now = clock.now();
      await correctFastClocks(pool, now);
      const ended = [new Date(now - IDLE), new Date(now - MAX_AGE)];
      await pool.query('delete from work.login where used_at < $1 or began_at < $2', ended);
      // Locks the password, so that a concurrent change either waits and then ends this login, or is visible here.
      const { rowCount } = await pool.query(
        `with known as (select user_id from work.user_password where user_id = $2 and hash = $4 for share),
            longest_unused as (
              delete from work.login where digest in (
                select digest from work.login join known using (user_id) order by used_at desc offset ${MAX_LOGINS - 1}))
       insert into work.login (digest, user_id, began_at, used_at) select $1, user_id, $3, $3 from known`,
        [digestOf(token), userId, new Date(now), hash],
      );
      return rowCount === 1 ? token : null;
    },

    find: async (token) => {
      if (!TOKEN.test(token)) return null;
      const now = clock.now();
      const found = await findLogin(digestOf(token).toString('hex'));
      if (found === null) return null;
      const { used_at, began_at, ...user } = found;
      if ([used_at, began_at].some((time) => isAhead(time.getTime(), now)))
        await correctFastClocks(pool, now);
      else if (now - used_at.getTime() > MINUTE)
        await pool.query('update work.login set used_at = $2 where digest = $1', [
          digestOf(token),
          new Date(now),
        ]);
      return user;
    },

    end: async (token) => {
      await queryWithSynchronousCommit(pool, 'delete from work.login where digest = $1', [digestOf(token)]);
    },

    endAll: async (userId) => {
      await queryWithSynchronousCommit(pool, 'delete from work.login where user_id = $1', [userId]);
    },

    count: async (userId) => {
      const now = clock.now();
      const { rows } = await pool.query<{ logins: number }>(
        `select count(*)::int as logins from work.login
       where user_id = $1 and used_at >= $2 and began_at >= $3`,
        [userId, new Date(now - IDLE), new Date(now - MAX_AGE)],
      );
      return rows[0]?.logins ?? 0;
    },
  };
}

/** Logins that have not ended, by the digests of their tokens in hex: any browser may send any token. */
const createLoginReader = ({ pool, clock }: Pick<ProcessorDeps, 'pool' | 'clock'>) =>
  rowLoader(async (digests) => {
    const now = clock.now();
    const { rows } = await pool.query<LoggedIn & { digest: string; used_at: Date; began_at: Date }>({
      name: 'logins',
      text: `select encode(l.digest, 'hex') as digest, u.user_id, u.partner_id, u.name, p.name as partner_name, w.is_first,
                    'UTC' as time_zone,                    l.used_at, l.began_at
             from work.login l
             join read.user_account u using (user_id)
             join read.partner p using (partner_id)
             join work.user_password w using (user_id)
             where l.digest = any ($1::bytea[]) and l.used_at >= $2 and l.began_at >= $3 and u.removed_at is null`,
      values: [digests.map((hex) => Buffer.from(hex, 'hex')), new Date(now - IDLE), new Date(now - MAX_AGE)],
    });
    return new Map(rows.map(({ digest, ...login }) => [digest, login]));
  });

/** Moves logins that a fast clock recorded to now, so that they end in time. */
async function correctFastClocks(pool: pg.Pool, now: number): Promise<void> {
  const { rowCount } = await pool.query(
    `update work.login set used_at = least(used_at, $1), began_at = least(began_at, $1)
     where used_at > $2 or began_at > $2`,
    [new Date(now), new Date(aheadAfter(now))],
  );
  reportFutureTime('login', rowCount ?? 0);
}

/** Returns the hash of a user's password; null if the user does not exist or cannot log in. */
export async function passwordOf(pool: pg.Pool, userId: string): Promise<string | null> {
  const { rows } = await pool.query<{ hash: string }>(
    `select w.hash from work.user_password w join read.user_account u using (user_id)
     where w.user_id = $1 and u.removed_at is null`,
    [userId],
  );
  return rows[0]?.hash ?? null;
}

interface NewPassword {
  readonly userId: string;
  readonly hash: string;
  /** Whether an operator set it, so that it must be changed first. */
  readonly isFirst: boolean;
  readonly at: number;
}

/**
 * Sets a user's password and ends all of the user's logins. `known`: only if this is the current hash.
 * @returns whether it was set
 */
export const setPassword = (
  pool: pg.Pool,
  { userId, hash, isFirst, at }: NewPassword,
  known?: string,
): Promise<boolean> =>
  withSynchronousCommit(pool, async (client) => {
    const values = [userId, hash, isFirst, new Date(at)];
    const { rowCount } = await (known === undefined
      ? client.query(
          `insert into work.user_password (user_id, hash, is_first, set_at) values ($1, $2, $3, $4)
           on conflict (user_id) do update
             set hash = excluded.hash, is_first = excluded.is_first, set_at = excluded.set_at`,
          values,
        )
      : client.query(
          'update work.user_password set hash = $2, is_first = $3, set_at = $4 where user_id = $1 and hash = $5',
          [...values, known],
        ));
    if (rowCount !== 1) return false;
    await endLogins(client, userId);
    return true;
  });

/** Deletes a user's password and ends all logins. */
export const forgetPassword = (pool: pg.Pool, userId: string): Promise<void> =>
  withSynchronousCommit(pool, async (client) => {
    await client.query('delete from work.user_password where user_id = $1', [userId]);
    await endLogins(client, userId);
  });

/** A separate statement after the password's: its snapshot includes logins that waited for the password's row. */
const endLogins = (client: pg.ClientBase, userId: string) =>
  client.query('delete from work.login where user_id = $1', [userId]);

/**
 * Logs users into the dashboard by name and password, and limits the wrong passwords. A successful login gives the browser a signed
 * device cookie. An attempt that shows the cookie of its user spends a rate of its own, so that nobody else can lock that device out.
 */

/** Wrong passwords per window. */
const WINDOW_MS = 15 * MINUTE;
const WRONG_PER_NETWORK = 100;
const WRONG_PER_USER_AND_NETWORK = 10;
const WRONG_PER_USER = 1_000;
const WRONG_PER_DEVICE = 10;

interface LoginAttempt {
  readonly name: string;
  readonly password: string;
  /** Keyed digest of the visitor's network, because rate names are stored. */
  readonly network: string;
  /** The device cookie; null: none was sent. */
  readonly device: string | null;
}

type LoginOutcome =
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

interface DashboardLoginDeps extends ProcessorDeps {
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
    const given = Buffer.from(cookie ?? '');
    const expected = Buffer.from(deviceOf(userId, id));
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
    let isGivenBack = true;
    try {
      isGivenBack = await check();
      return isGivenBack;
    } finally {
      if (isGivenBack) await giveBack(rates);
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
      if (!(await setPassword(pool, next, known))) return null;
      await changeUser(store, 'ChangePassword', userId, context);
      return logins.begin(userId, hash);
    },
  };
}
