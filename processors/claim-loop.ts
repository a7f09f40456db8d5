import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';
import type { Clock } from '../platform/clock.ts';
import { createWakeup } from '../platform/wakeup.ts';
import { type Claim, type Claimed, claimDue, type DueAttempts } from './claims.ts';

export interface ClaimLoopOptions {
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly due: DueAttempts;
  /** Longer than an attempt and the append of its outcome. */
  readonly leaseMs: number;
  /** Number of attempts that this process makes at a time, without those that take long. */
  readonly slots: number;
  /**
   * An attempt takes long from this time on, milliseconds. Such attempts leave their slots to others, up to `MAX_LONG` times as
   * many. Default: none does.
   */
  readonly longMs?: number;
  /** Makes the attempt and records its outcome. If it fails, the attempt is due again after its lease. */
  readonly attempt: (claim: Claim, stopping: AbortSignal) => Promise<void>;
  readonly onFailed: (error: unknown, claim: Claim) => void;
}

export interface ClaimLoop {
  /** Polls at once. */
  nudge(): void;
  /** Waits for running attempts. Claimed attempts that have not started are due again after their lease. */
  stop(): Promise<void>;
}

/** Wait after a failed query, or while all slots are in use. */
const RETRY_MS = 500;
/** Attempts that become due within this time share the next poll. */
const GATHER_MS = 20;
const MAX_LONG = 3;

/** Makes the attempts that are due. Processes share the load through claims. */
export const startClaimLoop = (options: ClaimLoopOptions): ClaimLoop => {
  const { pool, clock, due, leaseMs, slots, longMs = Number.POSITIVE_INFINITY, attempt, onFailed } = options;
  /** The running attempts, and when they began. */
  const running = new Map<Promise<void>, number>();
  const stopping = new AbortController();
  const wakeup = createWakeup();

  const start = (claim: Claim): void => {
    const attempting = attempt(claim, stopping.signal)
      .catch((error: unknown) => onFailed(error, claim))
      .finally(() => {
        running.delete(attempting);
        wakeup.wake();
      });
    running.set(attempting, performance.now());
  };

  const claim = (limit: number): Promise<Claimed> =>
    claimDue(pool, due, { now: clock.now(), leaseMs, limit }).catch(() => ({ claims: [], waitMs: RETRY_MS }));

  const room = (): number => {
    const since = performance.now() - longMs;
    const long = [...running.values()].filter((began) => began < since).length;
    return slots + Math.min(long, MAX_LONG * slots) - running.size;
  };

  const loop = (async () => {
    while (!stopping.signal.aborted) {
      const free = room();
      let waitMs = RETRY_MS;
      if (free > 0) {
        const claimed = await claim(free);
        for (const one of claimed.claims) start(one);
        if (claimed.claims.length === free) continue;
        await setTimeout(GATHER_MS);
        ({ waitMs } = claimed);
      }
      await wakeup.wait(waitMs, stopping.signal);
    }
  })();

  return {
    nudge: wakeup.wake,
    stop: async () => {
      stopping.abort();
      await loop;
      await Promise.all(running.keys());
    },
  };
};
