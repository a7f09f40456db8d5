import type pg from 'pg';
import { hashPassword, newPassword } from '../../platform/crypto/passwords.ts';
import { withSynchronousCommit } from '../../platform/postgres/transactions.ts';
import type { ProcessorDeps } from '../deps.ts';

/** Passwords and what else is kept of dashboard users outside of events, so that it can be forgotten. */

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
