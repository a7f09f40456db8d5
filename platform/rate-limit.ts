import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import { MINUTE } from '../domain/kernel/time.ts';
import { reportAhead } from './ahead.ts';
import type { Clock } from './clock.ts';

/** null: admitted. Otherwise the milliseconds until a retry may succeed. */
export type Verdict = null | { readonly retryMs: number };

export interface RateLimiter {
  /** Admits at most `ceiling` calls of `name` in any window of `windowMs`. */
  admit(name: string, ceiling: number, windowMs?: number): Verdict | Promise<Verdict>;
}

interface Window {
  /** Ring buffer of the last `ceiling` admissions' times; 0: none yet. */
  times: Float64Array;
  next: number;
}

interface Lease {
  left: number;
  until: number;
  /** Slot that granted the block, to which its rest can be returned. */
  slot: string;
  /** Size of the next block: grows when blocks are used up early, otherwise shrinks. */
  block: number;
  granted: number;
  asking: Promise<Verdict> | null;
}

const NAMES = 20_000;
/** Above this ceiling a ring buffer would be too large, so even a single process leases slots. */
const LARGEST_RING = 100_000;
const SECOND = 1_000;

/** Creates an exact in-memory limiter, for a single process and for limits per process. */
export const createLocalLimiter = (
  clock: Clock,
): { admit(name: string, ceiling: number, windowMs?: number): Verdict } => {
  const windows = new LRUCache<string, Window>({ max: NAMES });
  return {
    admit: (name, ceiling, windowMs = SECOND) => {
      let window = windows.get(name);
      if (window?.times.length !== ceiling) {
        window = { times: new Float64Array(ceiling), next: 0 };
        windows.set(name, window);
      }
      const now = clock.now();
      const oldest = window.times[window.next] as number;
      if (oldest !== 0 && now - oldest < windowMs && now >= oldest) {
        return { retryMs: windowMs - (now - oldest) };
      }
      window.times[window.next] = now;
      window.next = window.next + 1 === ceiling ? 0 : window.next + 1;
      return null;
    },
  };
};

/** Prefix of the names of rates per visitor. */
export const VISITOR_RATES = 'visitor ';

/** Deletes the counts of rates with this prefix that are older than two windows. */
export const sweepRates = async (
  pool: pg.Pool,
  prefix: string,
  now: number,
  windowMs = SECOND,
): Promise<void> => {
  const slotOf = (at: number): number => Math.floor(at / (windowMs / 10));
  await pool.query('delete from work.rate where name ^@ $1 and (slot < $2 or slot > $3)', [
    prefix,
    slotOf(now - 2 * windowMs),
    slotOf(now + 2 * windowMs + MINUTE),
  ]);
};

/**
 * Creates a limiter shared by all processes: exact with a single process; otherwise it leases blocks from PostgreSQL that
 * grow with demand to a twentieth of the ceiling, and returns their rest (contract, Requests 10).
 */
export const createRateLimiter = ({
  pool,
  clock,
  alone,
}: {
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly alone: () => boolean;
}): RateLimiter => {
  const local = createLocalLimiter(clock);
  const leases = new LRUCache<string, Lease>({ max: NAMES });

  const takeBlock = async (
    name: string,
    ceiling: number,
    windowMs: number,
    lease: Lease,
  ): Promise<Verdict> => {
    const largest = Math.max(1, Math.floor(ceiling / (windowMs > SECOND ? 1_000 : 20)));
    const usedUp = lease.left < 1;
    lease.block = Math.min(largest, usedUp ? lease.block * 2 : Math.max(1, lease.granted - lease.left));
    const { rows } = await pool.query({
      name: 'take_rate',
      text: 'select granted, granted_slot, retry_ms, was_ahead from work.take_rate($1, $2, $3, $4, $5, $6, $7)',
      values: [name, ceiling, windowMs, lease.block, clock.now(), lease.left, lease.slot],
    });
    const { granted, granted_slot, retry_ms, was_ahead } = rows[0] as Record<
      'granted_slot' | 'retry_ms',
      string
    > & { granted: number; was_ahead: boolean };
    if (was_ahead) reportAhead('rate');
    lease.left = granted;
    lease.granted = granted;
    lease.slot = granted_slot;
    lease.until = clock.now() + windowMs / 10;
    return granted > 0 ? null : { retryMs: Math.max(1, Number(retry_ms)) };
  };

  const spend = async (name: string, ceiling: number, windowMs: number, lease: Lease): Promise<Verdict> => {
    while (lease.left < 1 || clock.now() >= lease.until) {
      lease.asking ??= takeBlock(name, ceiling, windowMs, lease).finally(() => {
        lease.asking = null;
      });
      const verdict = await lease.asking;
      if (verdict !== null) return verdict;
    }
    lease.left -= 1;
    return null;
  };

  return {
    admit: (name, ceiling, windowMs = SECOND) => {
      // A longer window must survive a restart of the process.
      if (alone() && ceiling <= LARGEST_RING && windowMs <= SECOND)
        return local.admit(name, ceiling, windowMs);
      let lease = leases.get(name);
      if (!lease) {
        lease = { left: 0, until: 0, slot: '0', block: 1, granted: 0, asking: null };
        leases.set(name, lease);
      }
      if (lease.left >= 1 && clock.now() < lease.until) {
        lease.left -= 1;
        return null;
      }
      return spend(name, ceiling, windowMs, lease);
    },
  };
};
