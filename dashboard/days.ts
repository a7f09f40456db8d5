const DAY = 86_400_000;

/** The last UTC days up to the one of `now`, oldest first, as `YYYY-MM-DD`. */
export const daysBack = (now: number, days: number): string[] =>
  Array.from({ length: days }, (_, index) =>
    new Date(now - (days - 1 - index) * DAY).toISOString().slice(0, 10),
  );
