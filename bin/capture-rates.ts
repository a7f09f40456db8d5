import { MINUTE } from '../domain/kernel/time.ts';
import type { Clock } from '../platform/clock.ts';
import type { Config } from '../platform/config.ts';
import { createFairRate } from '../platform/fair-rate.ts';
import { createKeptOut, type SharedNotes } from '../platform/kept-out.ts';
import type { RateLimiter, Verdict } from '../platform/rate-limit.ts';
import type { ListedTracker } from '../read-api/tracker-directory.ts';

type Rates = Pick<Config, 'CAPTURES_PER_SECOND' | 'CAPTURES_PER_SECOND_PER_TRACKER'>;

/**
 * Admits captures: at most so many a second of a tracker, then of all trackers. While captures of other partners have
 * found the rate of all used up within a minute, those of one partner have its part of it, by however many trackers and
 * from however many addresses they come.
 */
export const createCaptureRates = (
  config: Rates,
  limiter: RateLimiter,
  clock: Clock,
  shared: SharedNotes | null,
): ((tracker: Pick<ListedTracker, 'tracker_id' | 'partner_id'>) => Promise<Verdict>) => {
  const admitPartner = createFairRate({
    ceiling: config.CAPTURES_PER_SECOND,
    keptOut: createKeptOut({ windowMs: MINUTE, now: clock.now, shared }),
    admit: (name, ceiling) => limiter.admit(`captures: ${name}`, ceiling),
  });
  return async ({ tracker_id, partner_id }) =>
    (await limiter.admit(`captures of ${tracker_id}`, config.CAPTURES_PER_SECOND_PER_TRACKER)) ??
    admitPartner(partner_id);
};
