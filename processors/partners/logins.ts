import { createHash, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import type pg from 'pg';
import type { CommandContext } from '../../commands/handle.ts';
import { changeUser, userIdOf } from '../../commands/partners/manage-user.ts';
import { aheadAfter, DAY, HOUR, isAhead, MINUTE } from '../../domain/kernel/time.ts';
import type { Role } from '../../domain/partners/events.ts';
import { reportFutureTime } from '../../platform/clock/clock.ts';
import { hashPassword, isPassword, newPassword } from '../../platform/crypto/passwords.ts';
import { rowLoader } from '../../platform/limits/loaders.ts';
import { type RateLimiter, retrySeconds } from '../../platform/limits/rate-limit.ts';
import { queryWithSynchronousCommit, withSynchronousCommit } from '../../platform/postgres/transactions.ts';
import type { ProcessorDeps } from '../deps.ts';
import type { SecondFactors } from './second-factor.ts';

/** The user of a dashboard session. */
interface LoggedIn {
  readonly user_id: string;
  readonly partner_id: string;
  readonly name: string;
  readonly partner_name: string;
  /** Whether an operator or an owner set the password, so that it must be changed first. */
  readonly is_first: boolean;
  /** Until the read model knows a new user's, and while the partner is suspended: read-only. */
  readonly role: Role;
  /** Whether the operator has suspended the partner. */
  readonly is_suspended: boolean;
  /** Name of an IANA time zone. */
  readonly time_zone: string;
  /** Whether the team requires a second factor, and the user has none. */
  readonly needs_second_factor: boolean;
}

interface LoginDetails {
  /** In words; null: not known. */
  readonly browser: string | null;
  /** Whether a code was given. */
  readonly withSecondFactor: boolean;
}

/** The login that changes its password. */
interface ChangingLogin {
  readonly token: string;
  /** In words; null: not known. */
  readonly browser: string | null;
}

/** A login as its user sees it. */
interface ListedLogin {
  /** Begins the digest of its token: enough to name it among the user's logins. */
  readonly login_id: string;
  readonly began_at: string;
  readonly used_at: string;
  readonly browser: string | null;
  readonly is_this: boolean;
}

export interface Logins {
  /**
   * Begins a login of a user who has proven the password of this hash.
   * @returns the token for the browser; null if the password has changed meanwhile
   */
  begin(userId: string, hash: string, details?: LoginDetails): Promise<string | null>;
  find(token: string): Promise<LoggedIn | null>;
  end(token: string): Promise<void>;
  endAll(userId: string): Promise<void>;
  /** The logins of a user that have not ended, the last used first. `token`: of this one. */
  list(userId: string, token: string): Promise<readonly ListedLogin[]>;
  /** Ends one login of the user. */
  endOne(userId: string, loginId: string): Promise<void>;
  /** Ends every login of the user but the one with this token. */
  endOthers(userId: string, token: string): Promise<void>;
  /**
   * Sets the password of a user whose current one has the hash `known`, and ends all of the user's logins. The login of `token`
   * goes on as a new one, which has had a second factor if that one had.
   * @returns the new login's token; null: the password has changed meanwhile, or the login has ended
   */
  changePassword(next: NewPassword, known: string, login: ChangingLogin): Promise<string | null>;
}

/** Limits of a login: time without use, and total time. */
const IDLE = 12 * HOUR;
const MAX_AGE = 7 * DAY;
/** Ceiling of one user. */
const MAX_LOGINS = 100;
const LOGIN_ID_LENGTH = 16;
const LOGIN_ID = /^[0-9a-f]{16}$/;
const UNKNOWN: LoginDetails = { browser: null, withSecondFactor: false };

const TOKEN = /^[A-Za-z0-9_-]{43}$/;
const digestOf = (token: string): Buffer => createHash('sha256').update(token).digest();

/** Stores dashboard logins by a digest of their token, so that reading the table does not allow a login. */
export function createLogins(deps: Pick<ProcessorDeps, 'pool' | 'clock'>): Logins {
  const { pool, clock } = deps;
  const findLogin = createLoginReader(deps);
  return {
    begin: async (userId, hash, { browser, withSecondFactor } = UNKNOWN) => {
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
       insert into work.login (digest, user_id, began_at, used_at, browser, with_second_factor)
         select $1, user_id, $3, $3, $5, $6 from known`,
        [digestOf(token), userId, new Date(now), hash, browser, withSecondFactor],
      );
      if (rowCount !== 1) return null;
      await pool.query(
        `insert into work.user_profile (user_id, logged_in_at, used_at) values ($1, $2, $2)
         on conflict (user_id) do update set logged_in_at = excluded.logged_in_at, used_at = excluded.used_at`,
        [userId, new Date(now)],
      );
      return token;
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
        await pool.query(
          `with used as (update work.login set used_at = $2 where digest = $1 returning user_id)
           insert into work.user_profile (user_id, used_at) select user_id, $2 from used
           on conflict (user_id) do update set used_at = excluded.used_at`,
          [digestOf(token), new Date(now)],
        );
      return user;
    },

    end: async (token) => {
      await queryWithSynchronousCommit(pool, 'delete from work.login where digest = $1', [digestOf(token)]);
    },

    endAll: async (userId) => {
      await queryWithSynchronousCommit(pool, 'delete from work.login where user_id = $1', [userId]);
    },

    list: async (userId, token) => {
      const now = clock.now();
      const { rows } = await pool.query<ListedLogin & { began_at: Date; used_at: Date }>(
        `select left(encode(l.digest, 'hex'), ${LOGIN_ID_LENGTH}) as login_id, l.began_at, l.used_at, l.browser,
                l.digest = $4 as is_this
         from work.login l left join work.second_factor f using (user_id)
         where l.user_id = $1 and l.used_at >= $2 and l.began_at >= $3 and (f.user_id is null or l.with_second_factor)
         order by l.used_at desc`,
        [userId, new Date(now - IDLE), new Date(now - MAX_AGE), digestOf(token)],
      );
      return rows.map(({ began_at, used_at, ...login }) => ({
        ...login,
        began_at: new Date(began_at).toISOString(),
        used_at: new Date(used_at).toISOString(),
      }));
    },

    endOne: async (userId, loginId) => {
      if (!LOGIN_ID.test(loginId)) return;
      await queryWithSynchronousCommit(
        pool,
        `delete from work.login where user_id = $1 and left(encode(digest, 'hex'), ${LOGIN_ID_LENGTH}) = $2`,
        [userId, loginId],
      );
    },

    endOthers: async (userId, token) => {
      await queryWithSynchronousCommit(pool, 'delete from work.login where user_id = $1 and digest <> $2', [
        userId,
        digestOf(token),
      ]);
    },

    changePassword: ({ userId, hash, isFirst, at }, known, { token, browser }) =>
      withSynchronousCommit(pool, async (client) => {
        const { rowCount } = await client.query(
          `update work.user_password set hash = $2, is_first = $3, set_at = $4 where user_id = $1 and hash = $5
             and exists (select from work.login where user_id = $1 and digest = $6)`,
          [userId, hash, isFirst, new Date(at), known, digestOf(token)],
        );
        if (rowCount !== 1) return null;
        const next = randomBytes(32).toString('base64url');
        // Begun after the password's, so that the statement sees logins that waited for the password's row.
        await client.query(
          `with ended as (delete from work.login where user_id = $1 returning digest, with_second_factor)
           insert into work.login (digest, user_id, began_at, used_at, browser, with_second_factor)
             select $3, $1, $4, $4, $5, with_second_factor from ended where digest = $2`,
          [userId, digestOf(token), digestOf(next), new Date(at), browser],
        );
        return next;
      }),
  };
}

/** Logins that have not ended, by the digests of their tokens in hex: any browser may send any token. */
const createLoginReader = ({ pool, clock }: Pick<ProcessorDeps, 'pool' | 'clock'>) =>
  rowLoader(async (digests) => {
    const now = clock.now();
    const { rows } = await pool.query<LoggedIn & { digest: string; used_at: Date; began_at: Date }>({
      name: 'logins',
      text: `select encode(l.digest, 'hex') as digest, u.user_id, u.partner_id, u.name, p.name as partner_name, w.is_first,
                    l.used_at, l.began_at, p.suspended_at is not null as is_suspended,
                    case when p.suspended_at is null then coalesce(m.role, 'read-only') else 'read-only' end as role, coalesce(o.time_zone, 'UTC') as time_zone,
                    coalesce(t.second_factor_required, false) and f.user_id is null as needs_second_factor
             from work.login l
             join read.user_account u using (user_id)
             join read.partner p using (partner_id)
             join work.user_password w using (user_id)
             left join read.team_member m on m.user_id = u.user_id
             left join read.team t on t.partner_id = u.partner_id
             left join work.second_factor f on f.user_id = u.user_id
             left join work.user_profile o on o.user_id = u.user_id
             where l.digest = any ($1::bytea[]) and l.used_at >= $2 and l.began_at >= $3
               and u.removed_at is null and m.removed_at is null and p.deleted_at is null and (f.user_id is null or l.with_second_factor)`,
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
     left join read.team_member m on m.user_id = u.user_id
     where w.user_id = $1 and u.removed_at is null and m.removed_at is null
       and not exists (select from read.partner p where p.partner_id = u.partner_id and p.deleted_at is not null)`,
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

/** Sets a user's password and ends all of the user's logins. */
export const setPassword = (pool: pg.Pool, { userId, hash, isFirst, at }: NewPassword): Promise<void> =>
  withSynchronousCommit(pool, async (client) => {
    await client.query(
      `insert into work.user_password (user_id, hash, is_first, set_at) values ($1, $2, $3, $4)
       on conflict (user_id) do update
         set hash = excluded.hash, is_first = excluded.is_first, set_at = excluded.set_at`,
      [userId, hash, isFirst, new Date(at)],
    );
    await endLogins(client, userId);
  });

/**
 * Sets the password of a user who has none yet.
 * @returns whether it was set
 */
export const setInitialPassword = (
  pool: pg.Pool,
  { userId, hash, at }: Omit<NewPassword, 'isFirst'>,
): Promise<boolean> =>
  withSynchronousCommit(pool, async (client) => {
    const { rowCount } = await client.query(
      `insert into work.user_password (user_id, hash, is_first, set_at) values ($1, $2, false, $3) on conflict do nothing`,
      [userId, hash, new Date(at)],
    );
    return rowCount === 1;
  });

/** Sets the time zone in which a user sees times. */
export async function setTimeZone(pool: pg.Pool, userId: string, timeZone: string): Promise<void> {
  await pool.query(
    `insert into work.user_profile (user_id, time_zone) values ($1, $2)
     on conflict (user_id) do update set time_zone = excluded.time_zone`,
    [userId, timeZone],
  );
}

/** Generates a password that the user must change first, and sets it. */
export async function giveFirstPassword(
  { pool, clock }: Pick<ProcessorDeps, 'pool' | 'clock'>,
  userId: string,
): Promise<string> {
  const password = newPassword();
  const hash = await hashPassword(password);
  await setPassword(pool, { userId, hash, isFirst: true, at: clock.now() });
  return password;
}

/** Deletes what is kept of a user outside of events, and ends all logins. */
export const forgetUser = (pool: pg.Pool, userId: string): Promise<void> =>
  withSynchronousCommit(pool, async (client) => {
    await client.query('delete from work.user_password where user_id = $1', [userId]);
    await endLogins(client, userId);
    for (const table of ['second_factor', 'recovery_code', 'user_profile'])
      await client.query(`delete from work.${table} where user_id = $1`, [userId]);
  });

/** A separate statement after the password's: its snapshot includes logins that waited for the password's row. */
const endLogins = (client: pg.ClientBase, userId: string) =>
  client.query('delete from work.login where user_id = $1', [userId]);

/**
 * Logs users into the dashboard by name and password, then by a code where the user has a second factor, and limits what is wrong.
 * A successful login gives the browser a signed device cookie. An attempt that shows the cookie of its user spends a rate of its own,
 * so that nobody else can lock that device out.
 */

/** Wrong passwords per window. */
const WINDOW_MS = 15 * MINUTE;
const WRONG_PER_NETWORK = 100;
const WRONG_PER_USER_AND_NETWORK = 10;
const WRONG_PER_USER = 1_000;
const WRONG_PER_DEVICE = 10;
/** Wrong codes: who guesses them knows the password already, and three of a million are right at any time. */
const WRONG_CODES_PER_USER = 30;
/** Time for the code after the password. */
const SECOND_STEP_MS = 10 * MINUTE;

/** Where an attempt comes from. */
interface Origin {
  /** Keyed digest of the visitor's network, because rate names are stored. */
  readonly network: string;
  /** The device cookie; null: none was sent. */
  readonly device: string | null;
  /** In words; null: not known. */
  readonly browser: string | null;
}

interface LoginAttempt extends Origin {
  readonly name: string;
  readonly password: string;
}

interface CodeAttempt extends Origin {
  readonly secondStep: string;
  readonly code: string;
}

type LoginOutcome =
  | { readonly token: string; readonly device: string }
  /** The password is right, and a code is asked for; signed for the form that sends it. */
  | { readonly secondStep: string }
  /** Too many wrong passwords: seconds until the next attempt is allowed. */
  | { readonly retryAfter: number }
  | 'wrong';

export interface DashboardLogins {
  /** Begins a login. @throws WorkRefused while too many passwords are checked */
  logIn(attempt: LoginAttempt): Promise<LoginOutcome>;
  /** Ends a login's second step. `expired`: the password must be given again. */
  enterCode(attempt: CodeAttempt): Promise<Exclude<LoginOutcome, { secondStep: string }> | 'expired'>;
  /** Checks the password or a code of a user who is logged in, whose tries `admitPasswordChange` counts. */
  isProven(userId: string, passwordOrCode: string): Promise<boolean>;
  /** Counts a try of the current password by a user who is logged in. @returns seconds to wait; null: this one is allowed */
  admitPasswordChange(userId: string): Promise<number | null>;
  /** Ends every login of the user and goes on with a new one. @returns its token; null if `current` is not the password */
  changePassword(
    userId: string,
    given: ChangingLogin & { readonly current: string; readonly password: string },
    context: CommandContext,
  ): Promise<string | null>;
}

interface DashboardLoginDeps extends ProcessorDeps {
  readonly limiter: Pick<RateLimiter, 'admit' | 'giveBack'>;
  readonly logins: Pick<Logins, 'begin' | 'changePassword'>;
  readonly factors: Pick<SecondFactors, 'isSetUp' | 'take'>;
  /** Returns a keyed digest. */
  readonly digest: (text: string) => string;
}

type Rate = readonly [name: string, ceiling: number, windowMs: number];

const rate = (name: string, ceiling: number): Rate => [`login ${name}`, ceiling, WINDOW_MS];

export function createDashboardLogins(deps: DashboardLoginDeps): DashboardLogins {
  const { pool, store, clock, limiter, logins, factors } = deps;

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
    return isSame(cookie ?? '', deviceOf(userId, id)) ? id : null;
  }

  /** Signed for one user and password, which a change in between ends. */
  const secondStepOf = (userId: string, at: string, hash: string): string =>
    `${userId}.${at}.${deps.digest(`second step of ${userId} at ${at} with ${hash}`)}`;

  /** Returns the user who has given the password, with its hash; null: too long ago, or made up. */
  async function findSecondStep(secondStep: string) {
    const [userId = '', at = ''] = secondStep.split('.');
    const age = clock.now() - Number(at);
    if (!UUID.test(userId) || !(age > -MINUTE && age < SECOND_STEP_MS)) return null;
    const hash = await passwordOf(pool, userId);
    return hash !== null && isSame(secondStep, secondStepOf(userId, at, hash)) ? { userId, hash } : null;
  }

  function ratesOf(userId: string, network: string, device: string | null): Rate[] {
    if (device !== null) return [rate(`device ${device}`, WRONG_PER_DEVICE)];
    return [
      rate(`from ${network}`, WRONG_PER_NETWORK),
      rate(`${userId} ${network}`, WRONG_PER_USER_AND_NETWORK),
      rate(userId, WRONG_PER_USER),
    ];
  }

  const codeRatesOf = (userId: string, network: string, device: string | null): Rate[] =>
    device === null
      ? [
          rate(`code ${userId} ${network}`, WRONG_PER_USER_AND_NETWORK),
          rate(`code ${userId}`, WRONG_CODES_PER_USER),
        ]
      : [rate(`code device ${device}`, WRONG_PER_DEVICE)];

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

  async function begin(userId: string, hash: string, device: string | null, details: LoginDetails) {
    const token = await logins.begin(userId, hash, details);
    return token === null ? 'wrong' : { token, device: deviceOf(userId, device ?? randomUUID()) };
  }

  return {
    logIn: async ({ name, password, network, device, browser }) => {
      const userId = userIdOf(name);
      const knownDevice = deviceId(userId, device);
      const rates = ratesOf(userId, network, knownDevice);
      const retryAfter = await take(rates);
      if (retryAfter !== null) return { retryAfter };
      const hash = await passwordOf(pool, userId);
      const isRight = await checked(rates, () => isPassword(password, hash));
      if (!isRight || hash === null) return 'wrong';
      if (await factors.isSetUp(userId))
        return { secondStep: secondStepOf(userId, String(clock.now()), hash) };
      return begin(userId, hash, knownDevice, { browser, withSecondFactor: false });
    },

    enterCode: async ({ secondStep, code, network, device, browser }) => {
      const proven = await findSecondStep(secondStep);
      if (proven === null) return 'expired';
      const { userId, hash } = proven;
      const knownDevice = deviceId(userId, device);
      const rates = codeRatesOf(userId, network, knownDevice);
      const retryAfter = await take(rates);
      if (retryAfter !== null) return { retryAfter };
      if (!(await checked(rates, () => factors.take(userId, code)))) return 'wrong';
      return begin(userId, hash, knownDevice, { browser, withSecondFactor: true });
    },

    isProven: (userId, passwordOrCode) =>
      checked(
        [changesOf(userId)],
        async () =>
          (await factors.take(userId, passwordOrCode)) ||
          isPassword(passwordOrCode, await passwordOf(pool, userId)),
      ),

    admitPasswordChange: (userId) => take([changesOf(userId)]),

    changePassword: async (userId, { current, password, ...login }, context) => {
      const known = await passwordOf(pool, userId);
      const isRight = await checked([changesOf(userId)], () => isPassword(current, known));
      if (!isRight || known === null) return null;
      const hash = await hashPassword(password);
      // If an operator has reset the password meanwhile, that one stays.
      const token = await logins.changePassword(
        { userId, hash, isFirst: false, at: clock.now() },
        known,
        login,
      );
      if (token !== null) await changeUser(store, 'ChangePassword', userId, context);
      return token;
    },
  };
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function isSame(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}
