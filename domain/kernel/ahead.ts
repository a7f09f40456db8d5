import { MINUTE } from './time.ts';

/** Maximum clock skew between processes, milliseconds. */
export const MAX_AHEAD_MS = MINUTE;

/**
 * Returns whether a recorded instant (milliseconds, as `now`) lies so far ahead that the clock must have been fast when it
 * was recorded. Such an instant must delay nothing: it counts as now.
 */
export const isAhead = (recorded: number, now: number): boolean => recorded - now > MAX_AHEAD_MS;

/** Returns the recorded instant, or `now` if it lies ahead. Milliseconds. */
export const notAhead = (recorded: number, now: number): number => (isAhead(recorded, now) ? now : recorded);

/** Returns the bound for queries: instants after it lie ahead. Milliseconds. */
export const aheadAfter = (now: number): number => now + MAX_AHEAD_MS;
