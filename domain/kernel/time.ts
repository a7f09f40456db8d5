export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Formats the UTC day of an instant (milliseconds) as `YYYY-MM-DD`, caching the last one. */
export const utcDay = (() => {
  let last = { number: Number.NaN, text: '' };
  return (at: number): string => {
    const number = Math.floor(at / DAY);
    if (number !== last.number) last = { number, text: new Date(at).toISOString().slice(0, 10) };
    return last.text;
  };
})();

/** Returns whole seconds from `at` to the next UTC midnight, at least 1. */
export const secondsToNextDay = (at: number): number => Math.max(1, Math.ceil((DAY - (at % DAY)) / SECOND));

/** Formats an instant as events and responses do: ISO 8601, UTC, milliseconds. */
export const isoTime = (at: number): string => new Date(at).toISOString();

/**
 * Returns whether a UTC day or instant (ISO 8601) is of the years 1 to 9999. PostgreSQL has no year 0, and events have no more than
 * four digits.
 */
export const hasUsualYear = (text: string): boolean => /^(?!0000)\d{4}-/.test(text);

/** Maximum clock skew between processes, milliseconds. */
const MAX_AHEAD_MS = MINUTE;

/**
 * Returns whether a recorded instant (milliseconds, as `now`) lies so far ahead that the clock must have been fast when it
 * was recorded. Such an instant must delay nothing: it counts as now.
 */
export const isAhead = (recorded: number, now: number): boolean => recorded - now > MAX_AHEAD_MS;

/** Returns the recorded instant, or `now` if it lies ahead. Milliseconds. */
export const notAhead = (recorded: number, now: number): number => (isAhead(recorded, now) ? now : recorded);

/** Returns the bound for queries: instants after it lie ahead. Milliseconds. */
export const aheadAfter = (now: number): number => now + MAX_AHEAD_MS;
