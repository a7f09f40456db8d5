import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import { MINUTE } from '../domain/kernel/time.ts';
import { reportAhead } from './ahead.ts';
import type { Clock } from './clock.ts';
import { inPages } from './forget.ts';
import { createLocalLimiter, type Quota, retrySeconds, type Verdict } from './local-limiter.ts';
import { createRateBlocks, type TakenBlock } from './rate-blocks.ts';

export { type Quota, retrySeconds, type Verdict };

export interface RateLimiter {
  /** Admits at most `ceiling` calls of `name` in any window of `windowMs`. */
  readonly admit: (name: string, ceiling: number, windowMs?: number) => Verdict | Promise<Verdict>;
  /** Returns what the last `admit` of this name left. */
  readonly quota: (name: string, ceiling: number, windowMs?: number) => Quota;
}

interface Lease {
  left: number;
  until: number;
  /** Slot that granted the block, to which its rest can be returned. */
  slot: string;
  /** Size of the next block: grows when blocks are used up early, otherwise shrinks. */
  block: number;
  granted: number;
  /** What the ceiling left when the block was granted, beside the block. */
  others: number;
  retryAt: number;
  /** The last refusal stands for calls up to its ceiling until this time. */
  refusedUntil: number;
  refusedCeiling: number;
  asking: Promise<Verdict> | null;
}

const NAMES = 20_000;
/** Above this ceiling a ring buffer would be too large, so even a single process leases slots. */
const LARGEST_RING = 100_000;
const SECOND = 1_000;
/** A refusal is repeated for this long without reading the counts, which other processes may lower by what they did not spend. */
const REFUSED_MS = 250;

/** Prefix of the names of rates per visitor. */
export const VISITOR_RATES = 'visitor ';

const SWEPT_AT_ONCE = 2_500;

/** It skips locked rows: waiting for one, with locks of others, might deadlock with a process that takes several rates at once. */
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

export interface RateLimiterOptions {
  readonly pool: pg.Pool;
  readonly clock: Clock;
  /** Returns whether no other process runs. */
  readonly alone: () => boolean;
}

/**
 * Creates a limiter shared by all processes: exact with a single process; otherwise it leases blocks from PostgreSQL that
 * grow with demand to a twentieth of the ceiling, and returns their rest (contract, Requests 10).
 */
export const createRateLimiter = (options: RateLimiterOptions): RateLimiter => new LeasingLimiter(options);

/** The functions that callers pass on are fields, bound to their object. */
class LeasingLimiter implements RateLimiter {
  readonly #takeBlocks: ReturnType<typeof createRateBlocks>;
  readonly #clock: Clock;
  readonly #alone: () => boolean;
  readonly #local: RateLimiter;
  readonly #leases = new LRUCache<string, Lease>({ max: NAMES });

  constructor({ pool, clock, alone }: RateLimiterOptions) {
    this.#takeBlocks = createRateBlocks(pool, clock);
    this.#clock = clock;
    this.#alone = alone;
    this.#local = createLocalLimiter(clock);
  }

  readonly admit = (name: string, ceiling: number, windowMs = SECOND): Verdict | Promise<Verdict> => {
    if (this.#isLocal(ceiling, windowMs)) return this.#local.admit(name, ceiling, windowMs);
    let lease = this.#leases.get(name);
    if (!lease) {
      lease = { ...NO_LEASE };
      this.#leases.set(name, lease);
    }
    if (lease.left >= 1 && this.#clock.now() < lease.until) {
      lease.left -= 1;
      return null;
    }
    const refusedMs = lease.refusedUntil - this.#clock.now();
    if (refusedMs > 0 && refusedMs <= REFUSED_MS && ceiling <= lease.refusedCeiling) {
      return { retryMs: Math.max(1, lease.retryAt - this.#clock.now()) };
    }
    return this.#spend(name, ceiling, windowMs, lease);
  };

  readonly quota = (name: string, ceiling: number, windowMs = SECOND): Quota => {
    if (this.#isLocal(ceiling, windowMs)) return this.#local.quota(name, ceiling, windowMs);
    const lease = this.#leases.get(name);
    if (!lease) return { left: ceiling, resetMs: windowMs };
    const left = lease.left + lease.others;
    const refusedMs = lease.retryAt - this.#clock.now();
    return { left, resetMs: left === 0 && refusedMs > 0 ? refusedMs : windowMs };
  };

  /** A longer window must survive a restart of the process. */
  #isLocal(ceiling: number, windowMs: number): boolean {
    return this.#alone() && ceiling <= LARGEST_RING && windowMs <= SECOND;
  }

  async #spend(name: string, ceiling: number, windowMs: number, lease: Lease): Promise<Verdict> {
    while (lease.left < 1 || this.#clock.now() >= lease.until) {
      lease.asking ??= this.#takeBlock(name, ceiling, windowMs, lease).finally(() => {
        lease.asking = null;
      });
      const verdict = await lease.asking;
      if (verdict !== null) return verdict;
    }
    lease.left -= 1;
    return null;
  }

  async #takeBlock(name: string, ceiling: number, windowMs: number, lease: Lease): Promise<Verdict> {
    const largest = Math.max(1, Math.floor(ceiling / (windowMs > SECOND ? 1_000 : 20)));
    const usedUp = lease.left < 1;
    const returned = lease.left;
    lease.block = Math.min(largest, usedUp ? lease.block * 2 : Math.max(1, lease.granted - lease.left));
    const taken = await this.#takeBlocks({
      ...{ name, ceiling, windowMs, size: lease.block },
      ...{ unused: returned, unusedSlot: lease.slot },
    });
    const { granted, granted_slot, retry_ms, was_ahead } = taken;
    if (was_ahead) reportAhead('rate');
    lease.left = granted;
    lease.granted = granted;
    lease.slot = granted_slot;
    lease.until = this.#clock.now() + windowMs / 10;
    lease.others = Math.max(0, ceiling - usedBefore(taken, windowMs) + returned - granted);
    lease.retryAt = this.#clock.now() + Number(retry_ms);
    if (granted === 0) {
      lease.refusedUntil = this.#clock.now() + Math.min(REFUSED_MS, Number(retry_ms));
      lease.refusedCeiling = ceiling;
    }
    return granted > 0 ? null : { retryMs: Math.max(1, Number(retry_ms)) };
  }
}

const NO_LEASE: Lease = {
  left: 0,
  until: 0,
  slot: '0',
  block: 1,
  granted: 0,
  others: 0,
  retryAt: 0,
  refusedUntil: 0,
  refusedCeiling: 0,
  asking: null,
};

/** Returns what the window already held, as `work.take_rate` counts it. */
const usedBefore = ({ granted_slot, was_ahead, slot, used }: TakenBlock, windowMs: number): number => {
  if (slot === null || used === null) return 0;
  const shift = was_ahead ? 0 : Number(BigInt(granted_slot) - BigInt(slot));
  const first = shift + (windowMs > SECOND ? 1 : 0);
  return used.slice(first).reduce((sum, count) => sum + count, 0);
};
