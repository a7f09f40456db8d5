import { HOUR } from '../kernel/time.ts';

/** A refresh gives up after this many attempts; a first enrichment never does (contract, Lookup 6). */
export const REFRESH_ATTEMPTS = 5;

/**
 * Returns the milliseconds from failed attempt `attempt` (from 1) to the next: `baseMs` doubled per attempt to at most an
 * hour, ±20 %. `jitter` from 0 to 1.
 */
export const retryDelayMs = (attempt: number, jitter: number, baseMs: number): number =>
  Math.round(Math.min(baseMs * 2 ** (attempt - 1), HOUR) * (0.8 + 0.4 * jitter));
