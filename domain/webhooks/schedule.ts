import { DAY, HOUR } from '../kernel/time.ts';
import type { DeliveryError } from './events.ts';

/** A retry cycle ends after this many attempts, or this much running time. */
export const CYCLE_ATTEMPTS = 12;
export const CYCLE_MS = 7 * DAY;
const MAX_DELAY_MS = 6 * HOUR;
/** Maximum Retry-After that is honoured. */
export const MAX_RETRY_AFTER_MS = DAY;
/** Below a minute by more than a poll takes, so that a probe goes out at least once a minute while work is due (contract, Webhooks 5). */
const MAX_PROBE_MS = 55_000;

/** The attempt that just ended, as far as the retry depends on it. */
export interface LastAttempt {
  /** Number within its cycle, from 1. */
  readonly attempt: number;
  /**
   * Running time of the cycle, milliseconds, without the time in which its endpoint was suspended: paused by the partner, or
   * its breaker open (`projections/webhooks/deliveries/health.ts`).
   */
  readonly ranMs: number;
  /** null: the receiver accepted it. */
  readonly error: DeliveryError | null;
  /** The receiver's Retry-After, milliseconds; null: none. */
  readonly retryAfterMs: number | null;
}

export interface RetryRules {
  /** Delay of the first retry, milliseconds. */
  readonly baseMs: number;
  /** 0 to 1. */
  readonly random: number;
}

export type AfterAttempt =
  | { readonly state: 'delivered' | 'failed'; readonly delayMs: null }
  | { readonly state: 'pending'; readonly delayMs: number };

/**
 * Decides a delivery's state after an attempt (contract, Webhooks 5). After attempt n it waits
 * `baseMs` × 4^(n−1), at most six hours, ±20 %, or the receiver's Retry-After if longer. It fails if the cycle has no
 * attempt left, or would run out of time.
 */
export function afterAttempt(last: LastAttempt, rules: RetryRules): AfterAttempt {
  if (last.error === null) return { state: 'delivered', delayMs: null };
  const delayMs = Math.max(
    retryDelayMs(last.attempt, rules),
    Math.min(last.retryAfterMs ?? 0, MAX_RETRY_AFTER_MS),
  );
  const isOver = last.attempt >= CYCLE_ATTEMPTS || last.ranMs + delayMs > CYCLE_MS;
  return isOver ? { state: 'failed', delayMs: null } : { state: 'pending', delayMs };
}

const retryDelayMs = (attempt: number, { baseMs, random }: RetryRules): number =>
  Math.round(Math.min(baseMs * 4 ** (attempt - 1), MAX_DELAY_MS) * (0.8 + 0.4 * random));

/** Returns the minimum interval between probes of an endpoint whose breaker is open (`BREAKER_OPENS_AFTER`), milliseconds. */
export const probeEveryMs = (baseMs: number): number => Math.min(MAX_PROBE_MS, 4 * baseMs);
