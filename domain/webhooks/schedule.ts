import { DAY, HOUR } from '../kernel/time.ts';
import type { DeliveryError } from './events.ts';

/** Spec, Limits: a retry cycle ends after so many attempts, or so much running time. */
export const CYCLE_ATTEMPTS = 12;
export const CYCLE_MS = 7 * DAY;
const LONGEST_DELAY_MS = 6 * HOUR;
/** A receiver's Retry-After is followed so far. */
const LONGEST_WISH_MS = DAY;
const LONGEST_PROBE_MS = 60_000;

export interface AttemptEnded {
  /** Number in its cycle, from 1. */
  readonly attempt: number;
  /** For how long the cycle has run, without the time in which its endpoint stood still, milliseconds. */
  readonly ranMs: number;
  /** null: the receiver took it. */
  readonly error: DeliveryError | null;
  /** What the receiver asked for; null: nothing. Milliseconds. */
  readonly retryAfterMs: number | null;
}

export interface RetryRules {
  /** The first retry's delay, milliseconds. */
  readonly baseMs: number;
  /** 0 to 1. */
  readonly random: number;
}

export type AfterAttempt =
  | { readonly state: 'delivered' | 'failed'; readonly delayMs: null }
  | { readonly state: 'pending'; readonly delayMs: number };

/**
 * What becomes of a delivery after an attempt (spec, Delivery; decisions, Webhooks): after attempt n it waits for
 * `baseMs` × 4^(n−1), at most six hours, ±20 %, or as the receiver wishes, if that is longer. It has failed where its
 * cycle has no attempt left, or would have no time left by then.
 */
export const afterAttempt = (ended: AttemptEnded, rules: RetryRules): AfterAttempt => {
  if (ended.error === null) return { state: 'delivered', delayMs: null };
  const delayMs = Math.max(
    retryDelayMs(ended.attempt, rules),
    Math.min(ended.retryAfterMs ?? 0, LONGEST_WISH_MS),
  );
  const isOver = ended.attempt >= CYCLE_ATTEMPTS || ended.ranMs + delayMs > CYCLE_MS;
  return isOver ? { state: 'failed', delayMs: null } : { state: 'pending', delayMs };
};

const retryDelayMs = (attempt: number, { baseMs, random }: RetryRules): number =>
  Math.round(Math.min(baseMs * 4 ** (attempt - 1), LONGEST_DELAY_MS) * (0.8 + 0.4 * random));

/** From one probe of an endpoint whose breaker holds to the next, at least, milliseconds. */
export const probeEveryMs = (baseMs: number): number => Math.min(LONGEST_PROBE_MS, 4 * baseMs);
