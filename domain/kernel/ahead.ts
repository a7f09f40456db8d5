import { MINUTE } from './time.ts';

/** Clocks of processes may differ by so much, in milliseconds. */
export const MAX_AHEAD_MS = MINUTE;

/**
 * Whether a recorded instant lies so far ahead of the clock that the clock was wrong when it was recorded, and has been
 * put right since. Such an instant must delay nothing: it counts as if it were now. Both in milliseconds.
 */
export const isAhead = (recorded: number, now: number): boolean => recorded - now > MAX_AHEAD_MS;

/** The recorded instant, or now where it lies ahead. All in milliseconds. */
export const notAhead = (recorded: number, now: number): number => (isAhead(recorded, now) ? now : recorded);

/** What is recorded later than this lies ahead: for queries. Milliseconds. */
export const aheadAfter = (now: number): number => now + MAX_AHEAD_MS;
