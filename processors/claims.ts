import type pg from 'pg';
import { aheadAfter } from '../domain/kernel/ahead.ts';
import { DAY } from '../domain/kernel/time.ts';
import { type AheadMark, reportAhead } from '../platform/ahead.ts';
import { forgetInBatches } from '../platform/forget.ts';

export interface Claim {
  readonly item: string;
  readonly cycle: number;
  readonly attempt: number;
}

export interface DueAttempts {
  /** Name of the prepared statement. */
  readonly name: string;
  /** Selects `item`, `cycle`, `attempt` of at most `$2` unclaimed attempts due at `$1`, `for update skip locked` (see `isClaimed`). */
  readonly select: string;
  /** Selects attempts that a fast clock recorded after `$5` and so scheduled too late; they are due now. */
  readonly selectAhead: string;
  readonly mark: AheadMark;
  /** Selects the earliest due time over all attempts, claimed or not. */
  readonly next: string;
}

/**
 * Returns SQL that is true while a live claim holds the attempt; the arguments are SQL expressions. A lease that ends
 * after `$4` is longer than any lease can be, so a fast clock took it and it does not count.
 */
export const isClaimed = (item: string, cycle: string, attempt: string): string => `exists (
  select from work.claim c where c.item = ${item} and c.cycle = ${cycle}
    and c.attempt = ${attempt} and c.lease_until > $1 and c.lease_until <= $4)`;

export interface Claimed {
  readonly claims: readonly Claim[];
  /** Milliseconds until the next poll is useful, unless a notification arrives earlier. */
  readonly waitMs: number;
}

/**
 * Claims due attempts. A claim ends with the outcome of its attempt or with its lease, so an expired lease repeats an
 * attempt and never loses one. `now` and `leaseMs` in milliseconds.
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

/** For when notifications are lost. */
const IDLE_MS = 2_000;
const POLL_MS = 500;
/** Short, because the wall clock may jump. */
const MAX_WAIT_MS = 2_000;

/** A due attempt that was not claimed belongs to another worker, whose lease may end. */
const waitMs = (next: Date | null, now: number): number => {
  if (next === null) return IDLE_MS;
  const inMs = next.getTime() - now;
  return inMs > 0 ? Math.min(inMs + 1, MAX_WAIT_MS) : POLL_MS;
};

/** The condition stands twice: a claim that is taken again meanwhile stays. */
const sweepOf = (ended: string): string => `
  delete from work.claim where ${ended} and ctid = any (array(
    select ctid from work.claim where ${ended} order by lease_until limit $2))`;

/** Deletes claims whose lease ended a day ago, or ends over a day from now because a fast clock took it. */
export const sweepClaims = async (pool: pg.Pool, now: number): Promise<void> => {
  await forgetInBatches(pool, sweepOf('lease_until < $1'), new Date(now - DAY));
  await forgetInBatches(pool, sweepOf('lease_until > $1'), new Date(now + DAY));
};
