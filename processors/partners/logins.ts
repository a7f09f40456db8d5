import { createHash, randomBytes } from 'node:crypto';
import type pg from 'pg';
import { aheadAfter, isAhead } from '../../domain/kernel/ahead.ts';
import { DAY, HOUR, MINUTE } from '../../domain/kernel/time.ts';
import { type Clock, reportFutureTime } from '../../platform/clock/clock.ts';
import { rowLoader } from '../../platform/limits/loaders.ts';
import { queryWithSynchronousCommit, withSynchronousCommit } from '../../platform/postgres/transactions.ts';

/** The user of a dashboard session. */
export interface LoggedIn {
  readonly user_id: string;
  readonly partner_id: string;
  readonly name: string;
  readonly partner_name: string;
  /** Whether an operator set the password, so that it must be changed first. */
  readonly is_first: boolean;
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

interface LoginsDeps {
  readonly pool: pg.Pool;
  readonly clock: Clock;
}

/** Limits of a login: time without use, and total time. */
const IDLE = 12 * HOUR;
const MAX_AGE = 7 * DAY;
/** Ceiling of one user. */
const MAX_LOGINS = 100;

const TOKEN = /^[A-Za-z0-9_-]{43}$/;
const digestOf = (token: string): Buffer => createHash('sha256').update(token).digest();

/** Stores dashboard logins by a digest of their token, so that reading the table does not allow a login. */
export const createLogins = (deps: LoginsDeps): Logins => {
  const { pool, clock } = deps;
  const findLogin = createLoginReader(deps);
  return {
    begin: async (userId, hash) => {
      const token = randomBytes(32).toString('base64url');
      const now = clock.now();
      await correctFastClocks(pool, now);
      await deleteEnded(pool, now);
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
      else if (now - used_at.getTime() > MINUTE) await touch(pool, token, now);
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
};

/** Logins that have not ended, by the digests of their tokens in hex: any browser may send any token. */
const createLoginReader = ({ pool, clock }: LoginsDeps) =>
  rowLoader(async (digests) => {
    const now = clock.now();
    const { rows } = await pool.query<LoggedIn & { digest: string; used_at: Date; began_at: Date }>({
      name: 'logins',
      text: `select encode(l.digest, 'hex') as digest, u.user_id, u.partner_id, u.name, p.name as partner_name, w.is_first,
                    l.used_at, l.began_at
             from work.login l
             join read.user_account u using (user_id)
             join read.partner p using (partner_id)
             join work.user_password w using (user_id)
             where l.digest = any ($1::bytea[]) and l.used_at >= $2 and l.began_at >= $3 and u.removed_at is null`,
      values: [digests.map((hex) => Buffer.from(hex, 'hex')), new Date(now - IDLE), new Date(now - MAX_AGE)],
    });
    return new Map(rows.map(({ digest, ...login }) => [digest, login]));
  });

const deleteEnded = (pool: pg.Pool, now: number) =>
  pool.query('delete from work.login where used_at < $1 or began_at < $2', [
    new Date(now - IDLE),
    new Date(now - MAX_AGE),
  ]);

/** Records that a login was used now. */
const touch = (pool: pg.Pool, token: string, now: number) =>
  pool.query('update work.login set used_at = $2 where digest = $1', [digestOf(token), new Date(now)]);

/** Moves logins that a fast clock recorded to now, so that they end in time. */
const correctFastClocks = async (pool: pg.Pool, now: number): Promise<void> => {
  const { rowCount } = await pool.query(
    `update work.login set used_at = least(used_at, $1), began_at = least(began_at, $1)
     where used_at > $2 or began_at > $2`,
    [new Date(now), new Date(aheadAfter(now))],
  );
  reportFutureTime('login', rowCount ?? 0);
};

/** Returns the hash of a user's password; null if the user does not exist or cannot log in. */
export const passwordOf = async (pool: pg.Pool, userId: string): Promise<string | null> => {
  const { rows } = await pool.query<{ hash: string }>(
    `select w.hash from work.user_password w join read.user_account u using (user_id)
     where w.user_id = $1 and u.removed_at is null`,
    [userId],
  );
  return rows[0]?.hash ?? null;
};

export interface NewPassword {
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

/** Does the same if the current hash is still `known`. @returns whether it was */
export const replacePassword = (
  pool: pg.Pool,
  known: string,
  { userId, hash, isFirst, at }: NewPassword,
): Promise<boolean> =>
  withSynchronousCommit(pool, async (client) => {
    const { rowCount } = await client.query(
      'update work.user_password set hash = $2, is_first = $3, set_at = $4 where user_id = $1 and hash = $5',
      [userId, hash, isFirst, new Date(at), known],
    );
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
