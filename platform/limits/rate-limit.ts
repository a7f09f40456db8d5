import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import { MINUTE } from '../../domain/kernel/time.ts';
import { type Clock, reportFutureTime } from '../clock/clock.ts';
import { inPages } from '../postgres/transactions.ts';
import { batchLoader } from './loaders.ts';

/**
 * Limits calls by name in a sliding window. With a single process it is exact and in memory. With several, each process leases
 * blocks of the rate from PostgreSQL (`work.take_rate`) that grow with demand to a hundredth of the ceiling; the rest of a block goes
 * back with the next one (contract, Requests 10).
 */

/** null: admitted. Otherwise the milliseconds until a retry may succeed. */
export type Verdict = null | { readonly retryMs: number };

/** Whole seconds until a retry may succeed, as `Retry-After` has them. */
export const retrySeconds = ({ retryMs }: NonNullable<Verdict>): number => Math.ceil(retryMs / 1_000);

/** What is left of a rate. */
export interface Quota {
  /** Calls that would still be admitted now. Other processes may use them first. */
  readonly left: number;
  /** Milliseconds until there is more: the window, or the rest of a refusal's time. */
  readonly resetMs: number;
}

export interface RateLimiter {
  /** Admits at most `ceiling` calls of `name` in any window of `windowMs` (default: a second). */
  readonly admit: (name: string, ceiling: number, windowMs?: number) => Verdict | Promise<Verdict>;
  /** Takes back the latest admission of a call that shall not count. */
  readonly giveBack: (name: string, ceiling: number, windowMs?: number) => void | Promise<void>;
  /** Returns what the last `admit` of this name left. */
  readonly quota: (name: string, ceiling: number, windowMs?: number) => Quota;
}

const SECOND = 1_000;
const MAX_NAMES = 20_000;
/** Above this ceiling a ring buffer would be too large, so even a single process leases blocks. */
const MAX_IN_MEMORY = 100_000;

interface RateLimiterOptions {
  readonly pool: pg.Pool;
  readonly clock: Clock;
  /** Returns whether no other process runs. */
  readonly alone: () => boolean;
}

/** Creates a limiter shared by all processes. A window longer than a second is kept in PostgreSQL, to survive a restart. */
export function createRateLimiter({ pool, clock, alone }: RateLimiterOptions): RateLimiter {
  const local = createLocalLimiter(clock);
  const leasing = createLeasingLimiter(pool, clock);
  const of = (ceiling: number, windowMs = SECOND): RateLimiter =>
    windowMs <= SECOND && ceiling <= MAX_IN_MEMORY && alone() ? local : leasing;
  return {
    admit: (name, ceiling, windowMs) => of(ceiling, windowMs).admit(name, ceiling, windowMs),
    giveBack: (name, ceiling, windowMs) => of(ceiling, windowMs).giveBack(name, ceiling, windowMs),
    quota: (name, ceiling, windowMs) => of(ceiling, windowMs).quota(name, ceiling, windowMs),
  };
}

/** Ring buffer of the times of admissions, at least as many as the ceiling; the oldest at `first`. */
interface Window {
  readonly times: Float64Array;
  first: number;
  used: number;
}

const timeOf = ({ times, first }: Window, nth: number): number =>
  times[(first + nth) % times.length] as number;

/** Creates an exact limiter in memory, for a single process and for limits per process. */
export function createLocalLimiter(
  clock: Clock,
): RateLimiter & { admit(name: string, ceiling: number, windowMs?: number): Verdict } {
  const windows = new LRUCache<string, Window>({ max: MAX_NAMES });

  /** Returns the window with room for `ceiling` admissions, without those that have left it. */
  function currentWindow(name: string, ceiling: number, windowMs: number): Window {
    let window = windows.get(name);
    if (window === undefined || window.times.length < ceiling) {
      const before = window;
      const times = new Float64Array(ceiling);
      window = { times, first: 0, used: before?.used ?? 0 };
      for (let nth = 0; before && nth < before.used; nth += 1) times[nth] = timeOf(before, nth);
      windows.set(name, window);
    }
    const now = clock.now();
    // The clock was set back.
    if (window.used > 0 && timeOf(window, window.used - 1) > now) window.used = 0;
    while (window.used > 0 && now - timeOf(window, 0) >= windowMs) {
      window.first = (window.first + 1) % window.times.length;
      window.used -= 1;
    }
    return window;
  }

  /** Milliseconds until a window that is full has room again. */
  const retryMsOf = (window: Window, ceiling: number, windowMs: number): number =>
    windowMs - (clock.now() - timeOf(window, window.used - ceiling));

  return {
    admit: (name, ceiling, windowMs = SECOND) => {
      const window = currentWindow(name, ceiling, windowMs);
      if (window.used >= ceiling) return { retryMs: retryMsOf(window, ceiling, windowMs) };
      window.times[(window.first + window.used) % window.times.length] = clock.now();
      window.used += 1;
      return null;
    },
    giveBack: (name, ceiling, windowMs = SECOND) => {
      const window = currentWindow(name, ceiling, windowMs);
      window.used = Math.max(0, window.used - 1);
    },
    quota: (name, ceiling, windowMs = SECOND) => {
      const window = currentWindow(name, ceiling, windowMs);
      if (window.used < ceiling) return { left: ceiling - window.used, resetMs: windowMs };
      return { left: 0, resetMs: retryMsOf(window, ceiling, windowMs) };
    },
  };
}

/** A part of a rate that this process spends on its own until `until`. */
interface Lease {
  left: number;
  until: number;
  /** Tenth of the window that the block counts in. */
  slot: string;
  /** Size of the next block: grows when blocks are used up early, otherwise shrinks. */
  block: number;
  granted: number;
  /** What the ceiling left when the block was granted, beside the block. */
  others: number;
  retryAt: number;
  taking: Promise<Verdict> | null;
}

function newLease(): Lease {
  return { left: 0, until: 0, slot: '0', block: 1, granted: 0, others: 0, retryAt: 0, taking: null };
}

interface WantedBlock {
  readonly name: string;
  readonly ceiling: number;
  readonly windowMs: number;
  readonly size: number;
  /** What is left of the block before, and the slot that it counts in. */
  readonly unused: number;
  readonly unusedSlot: string;
}

interface TakenBlock {
  readonly granted: number;
  readonly granted_slot: string;
  readonly retry_ms: string;
  readonly was_ahead: boolean;
  /** The counts before, by tenths of the window up to `slot`; null: there were none. */
  readonly slot: string | null;
  readonly used: readonly number[] | null;
}

/** In the order of the statement's parameters. */
const COLUMNS = ['name', 'ceiling', 'windowMs', 'size', 'unused', 'unusedSlot'] as const;

/** The subqueries read the row as it was before. All processes lock rows in the order of their names. */
const TAKE = `
  select granted, granted_slot, retry_ms, was_ahead,
         (select slot from work.rate where name = wanted.name) as slot,
         (select used from work.rate where name = wanted.name) as used
  from unnest($1::text[], $2::integer[], $3::bigint[], $4::integer[], $5::integer[], $6::bigint[])
         with ordinality as wanted (name, ceiling, window_ms, size, unused, unused_slot, nth),
       work.take_rate(wanted.name, wanted.ceiling, wanted.window_ms, wanted.size, $7, wanted.unused, wanted.unused_slot)
  order by nth`;

function createLeasingLimiter(pool: pg.Pool, clock: Clock): RateLimiter {
  const leases = new LRUCache<string, Lease>({ max: MAX_NAMES });

  const takeBlock = batchLoader(async (wanted: readonly WantedBlock[]) => {
    const sorted = wanted.toSorted((one, other) => (one.name < other.name ? -1 : 1));
    const values = [...COLUMNS.map((key) => sorted.map((one) => one[key])), clock.now()];
    const { rows } = await pool.query<TakenBlock>({ name: 'take_rates', text: TAKE, values });
    const taken = new Map(sorted.map((one, nth) => [one, rows[nth] as TakenBlock]));
    return wanted.map((one) => taken.get(one) as TakenBlock);
  });

  async function takeMore(name: string, ceiling: number, windowMs: number, lease: Lease): Promise<Verdict> {
    const largest = Math.max(1, Math.floor(ceiling / (windowMs > SECOND ? 1_000 : 100)));
    const unused = lease.left;
    lease.block = Math.min(largest, unused < 1 ? lease.block * 2 : Math.max(1, lease.granted - unused));
    lease.left = 0;
    const wanted = { name, ceiling, windowMs, size: lease.block, unused, unusedSlot: lease.slot };
    const taken = await takeBlock(wanted);
    const retryMs = Math.max(1, Number(taken.retry_ms));
    if (taken.was_ahead) reportFutureTime('rate');
    lease.left += taken.granted;
    lease.granted = taken.granted;
    lease.slot = taken.granted_slot;
    lease.until = clock.now() + windowMs / 10;
    lease.others = Math.max(0, ceiling - usedBefore(taken, windowMs) + unused - taken.granted);
    lease.retryAt = lease.left > 0 ? 0 : clock.now() + retryMs;
    return lease.left > 0 ? null : { retryMs };
  }

  function spend(lease: Lease): boolean {
    if (lease.left < 1 || clock.now() >= lease.until) return false;
    lease.left -= 1;
    return true;
  }

  async function spendNext(name: string, ceiling: number, windowMs: number, lease: Lease): Promise<Verdict> {
    while (!spend(lease)) {
      lease.taking ??= takeMore(name, ceiling, windowMs, lease).finally(() => {
        lease.taking = null;
      });
      const verdict = await lease.taking;
      if (verdict !== null) return verdict;
    }
    return null;
  }

  return {
    admit: (name, ceiling, windowMs = SECOND) => {
      const lease = leases.get(name) ?? newLease();
      leases.set(name, lease);
      return spend(lease) ? null : spendNext(name, ceiling, windowMs, lease);
    },
    giveBack: async (name, ceiling, windowMs = SECOND) => {
      const lease = leases.get(name);
      if (lease === undefined) return;
      if (windowMs <= SECOND) lease.left += 1;
      // At once, because it would otherwise count for minutes where no further call follows.
      else await takeBlock({ name, ceiling, windowMs, size: 0, unused: 1, unusedSlot: lease.slot });
    },
    quota: (name, ceiling, windowMs = SECOND) => {
      const lease = leases.get(name);
      if (!lease) return { left: ceiling, resetMs: windowMs };
      const left = lease.left + lease.others;
      const refusedMs = lease.retryAt - clock.now();
      return { left, resetMs: left === 0 && refusedMs > 0 ? refusedMs : windowMs };
    },
  };
}

/** Returns what the window already held, as `work.take_rate` counts it. */
function usedBefore({ granted_slot, was_ahead, slot, used }: TakenBlock, windowMs: number): number {
  if (slot === null || used === null) return 0;
  const shift = was_ahead ? 0 : Number(BigInt(granted_slot) - BigInt(slot));
  return used.slice(shift + (windowMs > SECOND ? 1 : 0)).reduce((sum, count) => sum + count, 0);
}

const SWEPT_AT_ONCE = 2_500;

/** Skips locked rows: waiting for one, with locks of others, might deadlock with a process that takes several rates at once. */
const SWEEP = `
  with page as materialized (select name from work.rate where name > $1 order by name limit ${SWEPT_AT_ONCE}),
       unused as materialized (
         select name from work.rate
         where name = any (array(select name from page))
           and (window_ms is null
                or slot < ($2 - 2 * window_ms) / greatest(1, window_ms / 10)
                or slot > ($2 + 2 * window_ms + ${MINUTE}) / greatest(1, window_ms / 10))
         for update skip locked),
       swept as (delete from work.rate where name = any (array(select name from unused)))
  select name as last from page order by name desc limit 1`;

/**
 * Deletes the counts of rates that were not used for two of their windows. `now`: milliseconds. Counts of 0.2.0 have no window
 * until they are used again; they may be lost, as in a crash of the server. Page by page, because each visitor's network has
 * rates of its own: one statement over millions would come to its time limit, and then never end in time again.
 */
export const sweepRates = (pool: pg.Pool, now: number): Promise<void> =>
  inPages(pool, { name: 'sweep_rates', text: SWEEP }, '', now);
