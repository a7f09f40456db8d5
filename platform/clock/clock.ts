import { channel } from 'node:diagnostics_channel';
import type { Logger } from 'pino';

/** The only source of domain time: every instant in an event, a row or a response. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** Formats an instant as the API does: ISO 8601, UTC, milliseconds. */
export const iso = (ms: number): string => new Date(ms).toISOString();

/** Kinds of timestamps from a fast clock that are treated as now. */
export const FUTURE_TIME_MARKS = [
  'allowance',
  'delivery',
  'domain_check',
  'enrichment',
  'login',
  'rate',
  'reservation',
  'session',
  'usage_day',
] as const;
export type FutureTimeMark = (typeof FUTURE_TIME_MARKS)[number];

const found = channel('doorplate:ahead');
const LOGGED_EVERY_MS = 60_000;

interface Found {
  readonly mark: FutureTimeMark;
  readonly count: number;
}

/** Reports timestamps that lie ahead of the clock and are treated as now (`isAhead`). */
export function reportFutureTime(mark: FutureTimeMark, count = 1): void {
  if (count > 0) found.publish({ mark, count } satisfies Found);
}

/** Counts reports of this process and logs each kind at most once a minute. @returns the function that stops it */
export function reportFutureTimes(
  log: Pick<Logger, 'warn'>,
  count: (mark: FutureTimeMark, by: number) => void,
): () => void {
  const loggedAt = new Map<FutureTimeMark, number>();
  const listener = (message: unknown): void => {
    const { mark, count: by } = message as Found;
    count(mark, by);
    const now = performance.now();
    if (now - (loggedAt.get(mark) ?? Number.NEGATIVE_INFINITY) < LOGGED_EVERY_MS) return;
    loggedAt.set(mark, now);
    log.warn(
      { mark, count: by },
      'recorded time lies more than a minute ahead of the clock, so one of the two clocks is wrong; it counts as now',
    );
  };
  found.subscribe(listener);
  return () => found.unsubscribe(listener);
}
