/** The one source of time: every instant in an event, a row or an answer comes from here. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** An instant as the API writes it: ISO 8601, UTC, milliseconds. */
export const iso = (ms: number): string => new Date(ms).toISOString();
