import { createHash, randomBytes } from 'node:crypto';
import type pg from 'pg';
import { aheadAfter, DAY, HOUR, isAhead, MINUTE } from '../../domain/kernel/time.ts';
import type { Role } from '../../domain/partners/events.ts';
import { reportFutureTime } from '../../platform/clock/clock.ts';
import { rowLoader } from '../../platform/limits/loaders.ts';
import { queryWithSynchronousCommit, withSynchronousCommit } from '../../platform/postgres/transactions.ts';
import type { ProcessorDeps } from '../deps.ts';
import type { NewPassword } from './passwords.ts';

/** The user of a dashboard session. */
export interface LoggedInUser {
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

export interface LoginDetails {
  /** In words; null: not known. */
  readonly browser: string | null;
  /** Whether a code was given. */
  readonly withSecondFactor: boolean;
}

/** The login that changes its password. */
export interface ChangingLogin {
  readonly token: string;
  /** In words; null: not known. */
  readonly browser: string | null;
}

/** A login as its user sees it. */
export interface ListedLogin {
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
  find(token: string): Promise<LoggedInUser | null>;
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

/** Whether the invitation of a user `u` requires a second factor. */
const SECOND_FACTOR_INVITED =
  'exists (select from read.invitation i where i.user_id = u.user_id and i.second_factor)';

/** Logins that have not ended, by the digests of their tokens in hex: any browser may send any token. */
const createLoginReader = ({ pool, clock }: Pick<ProcessorDeps, 'pool' | 'clock'>) =>
  rowLoader(async (digests) => {
    const now = clock.now();
    const { rows } = await pool.query<LoggedInUser & { digest: string; used_at: Date; began_at: Date }>({
      name: 'logins',
      text: `select encode(l.digest, 'hex') as digest, u.user_id, u.partner_id, u.name, p.name as partner_name, w.is_first,
                    l.used_at, l.began_at, p.suspended_at is not null as is_suspended,
                    case when p.suspended_at is null then coalesce(m.role, 'read-only') else 'read-only' end as role, coalesce(o.time_zone, 'UTC') as time_zone,
                    f.user_id is null and (coalesce(t.second_factor_required, false) or ${SECOND_FACTOR_INVITED}) as needs_second_factor
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
