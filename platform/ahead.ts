import { channel } from 'node:diagnostics_channel';
import type { Logger } from 'pino';

/** What was recorded by a clock that was ahead, and is treated as if it were recorded now. */
export const AHEAD_MARKS = [
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
export type AheadMark = (typeof AHEAD_MARKS)[number];

const found = channel('doorplate:ahead');
const LOGGED_EVERY_MS = 60_000;

interface Found {
  readonly mark: AheadMark;
  readonly count: number;
}

/** Reports recorded times that lie ahead of the clock and are treated as now (`isAhead`). */
export const reportAhead = (mark: AheadMark, count = 1): void => {
  if (count > 0) found.publish({ mark, count } satisfies Found);
};

/**
 * Counts and logs what is reported in this process, each kind at most once a minute in the log.
 * @returns a function that ends it
 */
export const watchAhead = (
  log: Pick<Logger, 'warn'>,
  count: (mark: AheadMark, by: number) => void,
): (() => void) => {
  const loggedAt = new Map<AheadMark, number>();
  const listener = (message: unknown): void => {
    const { mark, count: by } = message as Found;
    count(mark, by);
    const now = performance.now();
    if (now - (loggedAt.get(mark) ?? Number.NEGATIVE_INFINITY) < LOGGED_EVERY_MS) return;
    loggedAt.set(mark, now);
    log.warn(
      { mark, count: by },
      'a recorded time lies more than a minute ahead of the clock, which was wrong then or is now; it counts as now',
    );
  };
  found.subscribe(listener);
  return () => found.unsubscribe(listener);
};
