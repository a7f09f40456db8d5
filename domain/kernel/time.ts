const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** The UTC day of an instant, `YYYY-MM-DD`. `at` in milliseconds since the epoch. */
export const utcDay = (() => {
  let last = { number: Number.NaN, text: '' };
  return (at: number): string => {
    const number = Math.floor(at / DAY);
    // Nearly always the day that was asked for before.
    if (number !== last.number) last = { number, text: new Date(at).toISOString().slice(0, 10) };
    return last.text;
  };
})();

/** Whole seconds from `at` to the next UTC midnight, at least 1. */
export const secondsToNextDay = (at: number): number => Math.max(1, Math.ceil((DAY - (at % DAY)) / SECOND));

/** An instant as events and answers write it: ISO 8601, UTC, milliseconds. */
export const isoTime = (at: number): string => new Date(at).toISOString();
