import type { Position } from '../event-store/port.ts';
import type { Metrics } from '../platform/metrics.ts';
import { BILLING_PROCESSOR } from '../processors/billing/bill-completed-reveals.ts';
import type { Consumers } from '../processors/consumers.ts';
import { type SweepOptions, sweep } from '../processors/expiry.ts';
import { ENRICHING_PROCESSOR } from '../processors/lookup/enrich-reveals.ts';
import { SETTLING_PROCESSOR } from '../processors/lookup/settle-ended-work.ts';
import { expiringReveals } from '../processors/reveals/expire-reveals.ts';
import { deleteExpiredStreams } from '../processors/sessions/delete-expired-streams.ts';
import { expiringSessions } from '../processors/sessions/expire-sessions.ts';
import { trackerDaysClosedBefore } from '../processors/usage/close-tracker-days.ts';
import { allProjections } from '../projections/all.ts';
import { forgetExpiredRevealsBefore } from '../projections/reveals/reveals.ts';
import { forgetExpiredSessionsBefore } from '../projections/sessions/sessions.ts';
import type { Foundation } from './foundation.ts';
import type { Job } from './periodically.ts';

/** Whoever follows the log: nothing is deleted that one of them has not passed. */
export const CONSUMERS: Consumers = {
  projections: allProjections.map(({ name }) => name),
  processors: [SETTLING_PROCESSOR, ENRICHING_PROCESSOR, BILLING_PROCESSOR],
};

const PROJECTED_MS = 10_000;
/** A sweep of very many ends before its next run is due. */
const RUN_MS = 45_000;

type Parts = Pick<Foundation, 'store' | 'pool' | 'clock' | 'log' | 'progress'>;
type Run = Pick<SweepOptions, 'signal' | 'forMs' | 'onBlocked'>;

const optionsOf = ({ store, pool, clock, log, progress }: Parts, run: Run): SweepOptions => ({
  store,
  pool,
  clock,
  log,
  consumers: CONSUMERS,
  closedBefore: () => trackerDaysClosedBefore({ pool }),
  projected: (name: string, position: Position | null) => progress.reached([name], position, PROJECTED_MS),
  ...run,
});

/** Deletes sessions and receipts that have expired, the keys of their days, and in the end what told of them. */
export const retentionJobs = (foundation: Foundation, metrics: Metrics, signal: AbortSignal): Job[] => {
  const options = optionsOf(foundation, { signal, forMs: RUN_MS, onBlocked: metrics.expiryBlocked });
  // From then on another process tells of it.
  signal.addEventListener('abort', metrics.expiryNotMine);
  return [
    ['10 * * * * *', () => sweep(expiringSessions, options)],
    ['40 * * * * *', () => sweep(expiringReveals, options)],
    ['50 * * * * *', () => foundation.dayKeys.destroyExpired()],
    ['43 3 * * *', () => forgetWhatExpired(foundation)],
  ];
};

/** Deletes what has told for long enough of what expired. */
export const forgetWhatExpired = ({ store, pool, clock }: Parts): Promise<void> =>
  deleteExpiredStreams({ store, pool, clock, consumers: CONSUMERS }, async (before) => {
    await forgetExpiredSessionsBefore(pool, before);
    await forgetExpiredRevealsBefore(pool, before);
  });

/** Sweeps whatever has expired and may be deleted, however long it takes. */
export const sweepToEnd = async (parts: Parts): Promise<void> => {
  const options = optionsOf(parts, {
    signal: new AbortController().signal,
    forMs: Number.POSITIVE_INFINITY,
    onBlocked: () => undefined,
  });
  await sweep(expiringSessions, options);
  await sweep(expiringReveals, options);
};
