import type pg from 'pg';
import { aheadAfter } from '../domain/kernel/ahead.ts';
import { DAY } from '../domain/kernel/time.ts';
import { type AheadMark, reportAhead } from '../platform/ahead.ts';

export interface Claim {
  readonly item: string;
  readonly cycle: number;
  readonly attempt: number;
}

export interface DueAttempts {
  /** Names the prepared statement. */
  readonly name: string;
  /**
   * Selects `item`, `cycle` and `attempt` of what is due at `$1` and not held by a live claim, at most `$2`
   * rows, locked `for update skip locked` so that workers don't reach for the same ones (`isClaimed`).
   */
  readonly select: string;
  /** The same of what a clock that was ahead has made due later: it was recorded after `$5`, and is due now. */
  readonly selectAhead: string;
  readonly mark: AheadMark;
  /** Selects when the next of all is due, whoever holds it. */
  readonly next: string;
}

/**
 * SQL: whether a live claim holds an attempt. A claim is live until its lease ends, and so after `$1` and not after `$4`:
 * a longer lease was taken by a clock that was ahead. The arguments are SQL expressions.
 */
export const isClaimed = (item: string, cycle: string, attempt: string): string => `exists (
  select from work.claim c where c.item = ${item} and c.cycle = ${cycle}
    and c.attempt = ${attempt} and c.lease_until > $1 and c.lease_until <= $4)`;

export interface Claimed {
  readonly claims: readonly Claim[];
  /** Milliseconds after which it is worth asking again, unless a notification comes before. */
  readonly waitMs: number;
}

/**
 * Takes attempts that are due. A claim is never given back: it ends with the attempt (whose outcome makes
 * the next one due) or with its lease. A lost lease repeats an attempt, and never loses one. `now` and
 * `leaseMs` in milliseconds.
 */
export const claimDue = async (
  pool: pg.Pool,
  { name, select, selectAhead, next, mark }: DueAttempts,
  { now, leaseMs, limit }: { readonly now: number; readonly leaseMs: number; readonly limit: number },
): Promise<Claimed> => {
  const leaseUntil = now + leaseMs;
  const { rows } = await pool.query<{ claims: Claim[]; ahead: number; next: Date | null }>({
    name,
    text: `with due as materialized (${select}),
             ahead as materialized (${selectAhead}),
             held as (
               insert into work.claim as held (item, cycle, attempt, lease_until)
               select item, cycle, attempt, $3 from (table due union table ahead limit $2) claimed
               on conflict (item, cycle, attempt) do update set lease_until = excluded.lease_until
                 where held.lease_until <= $1 or held.lease_until > $4
               returning item, cycle, attempt)
           select (select coalesce(json_agg(held), '[]') from held) as claims, (select count(*)::int from ahead) as ahead,
                  (${next}) as next`,
    values: [at(now), limit, at(leaseUntil), at(aheadAfter(leaseUntil)), at(aheadAfter(now))],
  });
  const [row] = rows;
  reportAhead(mark, row?.ahead ?? 0);
  return { claims: row?.claims ?? [], waitMs: waitMs(row?.next ?? null, now) };
};

const at = (ms: number): Date => new Date(ms);

const IDLE_MS = 10_000;
const POLL_MS = 500;
/** A clock may jump. */
const MAX_WAIT_MS = 2_000;

/** What is due and not taken is held by another worker, whose lease may end. */
const waitMs = (next: Date | null, now: number): number => {
  if (next === null) return IDLE_MS;
  const inMs = next.getTime() - now;
  return inMs > 0 ? Math.min(inMs + 1, MAX_WAIT_MS) : POLL_MS;
};

/** Forgets claims whose lease ended long ago, or was taken by a clock that was ahead: their attempts are over or due again. */
export const sweepClaims = async (pool: pg.Pool, now: number): Promise<void> => {
  await pool.query('delete from work.claim where lease_until < $1 or lease_until > $2', [
    new Date(now - DAY),
    new Date(now + DAY),
  ]);
};
