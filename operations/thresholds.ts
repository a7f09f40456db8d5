/** The thresholds of the conditions. No other file has one. */
import { DAY, MINUTE } from '../domain/kernel/time.ts';

/** The share of a limit from which on it is nearly reached. */
export const NEAR = 0.8;
/** A key is told to expire. */
export const KEY_EXPIRES_MS = 14 * DAY;
/** From so many failures in a row on an endpoint needs attention, before its circuit breaker opens. */
export const MIN_FAILURES = 3;
/** Deliveries that are due for so long are late. */
export const LATE_MS = MINUTE;
/** Clocks agree within a minute (docs/runbook.md, Clocks); a heartbeat is up to a few seconds old. */
export const CLOCK_AHEAD_MS = MINUTE;
export const BEHIND_MS = 30_000;
export const CERTIFICATE_ENDS_MS = 14 * DAY;
/** Free shares of a disk, and days for which what is free lasts. */
export const DISK = {
  warning: { share: 0.1, days: 7 },
  error: { share: 0.05, days: 2 },
} as const;
