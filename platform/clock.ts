/** The only source of domain time: every instant in an event, a row or a response. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** Formats an instant as the API does: ISO 8601, UTC, milliseconds. */
export const iso = (ms: number): string => new Date(ms).toISOString();
