import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { findKept } from './kept.ts';

const revealRow = z.object({
  reveal_id: z.string(),
  session_id: z.string(),
  tracker_id: z.string(),
  partner_id: z.string(),
  created_at: z.string(),
  expires_at: z.string(),
  completed_at: z.string().nullable(),
  billable: z.boolean().nullable(),
  result: z.record(z.string(), z.unknown()).nullable(),
});
export type RevealRow = z.output<typeof revealRow>;

const readReveal = (db: DatabasePool, partnerId: string, revealId: string): Promise<RevealRow | null> =>
  db.maybeOne(sql.type(revealRow)`
    select reveal_id, session_id, tracker_id, partner_id, created_at, expires_at, completed_at, billable, result
    from read.reveal where reveal_id = ${revealId} and partner_id = ${partnerId}`);

const readExpiredAt = (db: DatabasePool, partnerId: string, revealId: string): Promise<string | null> =>
  db.maybeOneFirst(sql.type(z.object({ expired_at: z.string() }))`
    select expired_at from read.expired_reveal where reveal_id = ${revealId} and partner_id = ${partnerId}`);

/** A receipt of the partner's that has not expired, or why there is none. `now` in milliseconds. */
export const findReveal = async (
  { db, caughtUp }: { readonly db: DatabasePool; readonly caughtUp: () => Promise<boolean> },
  partnerId: string,
  revealId: string,
  now: number,
): Promise<RevealRow | 'reveal_not_found' | 'reveal_expired'> => {
  const reads = {
    row: () => readReveal(db, partnerId, revealId),
    expiredAt: () => readExpiredAt(db, partnerId, revealId),
    caughtUp,
  };
  const found = await findKept(reads, now);
  return found === 'gone' ? 'reveal_expired' : found === 'unknown' ? 'reveal_not_found' : found;
};

const revealOfSession = z.object({
  reveal_id: z.string(),
  session_id: z.string(),
  created_at: z.string(),
  completed_at: z.string().nullable(),
  billable: z.boolean().nullable(),
  company: z.string().nullable(),
});
export type RevealOfSession = z.output<typeof revealOfSession>;

/** What has been revealed of these sessions of the partner's, the oldest first. */
export const listRevealsOf = (
  db: DatabasePool,
  partnerId: string,
  sessionIds: readonly string[],
): Promise<readonly RevealOfSession[]> =>
  db.any(sql.type(revealOfSession)`
    select reveal_id, session_id, created_at, completed_at, billable, result -> 'company' ->> 'name' as company
    from read.reveal
    where session_id = any(${sql.array([...sessionIds], 'uuid')}) and partner_id = ${partnerId}
    order by created_at, reveal_id`);
