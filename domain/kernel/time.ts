const SECOND = 1_000;
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
