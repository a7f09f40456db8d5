import { type DatabasePool, sql } from 'slonik';
import { NIL } from 'uuid';
import { z } from 'zod';
import type { UnsweptReveal } from '../../domain/billing/audit-reveals.ts';
import { withAllFields } from '../../domain/lookup/result.ts';
import { type RevealResult, revealFacts } from '../../domain/reveals/events.ts';
import type { Reveal } from '../../domain/reveals/reveal.ts';
import { columnsOf, findUnexpired, type Reads } from '../reads.ts';

const revealRow = revealFacts.extend({
  completed_at: z.string().nullable(),
  billable: z.boolean().nullable(),
  result: z.custom<RevealResult>().nullable(),
});

async function readReveal(db: DatabasePool, partnerId: string, revealId: string): Promise<Reveal | null> {
  const row = await db.maybeOne(sql.type(revealRow)`
    select ${columnsOf(revealRow)} from read.reveal where reveal_id = ${revealId} and partner_id = ${partnerId}`);
  if (row === null) return null;
  const { completed_at, billable, result, ...facts } = row;
  const isComplete = completed_at !== null && billable !== null && result !== null;
  return {
    ...facts,
    completed: isComplete ? { completed_at, billable, result: withAllFields(result) } : null,
  };
}

/** Finds a reveal of the partner's that has not expired, or why there is none. `now` in milliseconds. */
export const findReveal = (reads: Reads, partnerId: string, id: string, now: number) =>
  findUnexpired(reads, { kind: 'reveal', id, partnerId, now }, () => readReveal(reads.db, partnerId, id));

/** Returns whether a reveal of the partner's ended before its time. */
export async function wasErased(db: DatabasePool, partnerId: string, revealId: string): Promise<boolean> {
  const reason = await db.maybeOneFirst(sql.type(z.object({ reason: z.string() }))`
    select reason from read.expired_reveal
    where reveal_id = ${revealId} and partner_id = ${partnerId} and reason is not null`);
  return reason !== null;
}

const revealOfSession = z.object({
  reveal_id: z.string(),
  session_id: z.string(),
  created_at: z.string(),
  completed_at: z.string().nullable(),
  billable: z.boolean().nullable(),
  match_type: z.string().nullable(),
  /** The company's name; for another match the name of the network's operator. */
  name: z.string().nullable(),
});
export type RevealOfSession = z.output<typeof revealOfSession>;

/** A session may have been revealed any number of times, each with an Idempotency-Key of its own. */
const MAX_REVEALS_OF_SESSION = 50;

/** The first reveals of each of these sessions of the partner's, the oldest first. */
export const listRevealsOf = (
  db: DatabasePool,
  partnerId: string,
  sessionIds: readonly string[],
): Promise<readonly RevealOfSession[]> =>
  db.any(sql.type(revealOfSession)`
    select r.reveal_id, r.session_id, r.created_at, r.completed_at, r.billable, r.result ->> 'match_type' as match_type,
           r.result -> 'company' ->> 'name' as name
    from unnest(${sql.array([...sessionIds], 'uuid')}) as s (session_id)
    cross join lateral (
      select * from read.reveal o
      where o.session_id = s.session_id and o.partner_id = ${partnerId}
      order by o.created_at, o.reveal_id limit ${MAX_REVEALS_OF_SESSION}) r
    order by r.created_at, r.reveal_id`);

const unsweptReveal = z.object({
  reveal_id: z.string(),
  pending: z.boolean(),
  expires_at: z.string(),
  cursor: z.string(),
});

/** Read for an audit, which must not keep the process from its requests for long. */
const PAGE_ROWS = 1_000;

/** Reads the ids of a partner's reveals that a sweep is deleting, or was when it was cut off. */
export const readExpiringReveals = (db: DatabasePool, partnerId: string): Promise<readonly string[]> =>
  db.anyFirst(sql.type(z.object({ id: z.string() }))`
    select id from work.expiring where kind = 'reveals' and partner_id = ${partnerId}`);

/** Reads all of a partner's reveals that have not been swept, by id. */
export async function readUnsweptReveals(
  db: DatabasePool,
  partnerId: string,
): Promise<ReadonlyMap<string, UnsweptReveal>> {
  const rows = new Map<string, UnsweptReveal>();
  for (let after: string = NIL; ; ) {
    const page = await db.any(sql.type(unsweptReveal)`
      select reveal_id, completed_at is null as pending, expires_at, last_position::text as cursor
      from read.reveal where partner_id = ${partnerId} and reveal_id > ${after}::uuid
      order by reveal_id limit ${PAGE_ROWS}`);
    for (const { cursor, ...row } of page) {
      rows.set(row.reveal_id, { ...row, last_position: BigInt(cursor) });
      after = row.reveal_id;
    }
    if (page.length < PAGE_ROWS) return rows;
  }
}
