/** The thresholds of the conditions, which `doorplate doctor` shares. */
import { DAY, MINUTE } from '../domain/kernel/time.ts';

/** Share of a limit from which on it is nearly reached. */
export const NEAR = 0.8;
/** How long before its expiry a key is reported. */
export const KEY_EXPIRES_MS = 14 * DAY;
/** Failures in a row from which on an endpoint is failing; its circuit breaker opens later. */
export const MIN_FAILURES = 3;
/** How long a delivery may be due before it is late. */
export const DELIVERY_LATE_MS = MINUTE;
/** Clocks agree within a minute (docs/runbook.md, Clocks); a heartbeat is up to a few seconds old. */
export const CLOCK_AHEAD_MS = MINUTE;
export const CONSUMER_BEHIND_MS = 30_000;
export const CERTIFICATE_ENDS_MS = 14 * DAY;
/** Free shares of a disk, and days for which what is free lasts. */
export const DISK = {
  warning: { share: 0.1, days: 7 },
  error: { share: 0.05, days: 2 },
} as const;
