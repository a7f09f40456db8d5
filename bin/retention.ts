import { utcDay } from '../domain/kernel/time.ts';
import { ENRICHMENT_PREFIX } from '../domain/lookup/events.ts';
import { EXPIRED_PREFIX } from '../domain/sessions/events.ts';
import { SIGNALS_PREFIX } from '../domain/signals/events.ts';
import { DELIVERIES_PREFIX, WEBHOOKS_PREFIX } from '../domain/webhooks/events.ts';
import type { Position } from '../event-store/port.ts';
import type { Job } from '../platform/clock/periodically.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import { type Expiring, type SweepOptions, sweep } from '../processors/expiry.ts';
import { forgetResults } from '../processors/lookup/forget-results.ts';
import { snapshotEnrichments } from '../processors/lookup/snapshot-enrichments.ts';
import { forgetNames } from '../processors/retire-streams.ts';
import { expiringReveals } from '../processors/reveals/expiring-reveals.ts';
import { deleteExpiredStreams, expiringSessions } from '../processors/sessions/expire-sessions.ts';
import { type ExpireSignalsOptions, expireSignals } from '../processors/signals/expire-signals.ts';
import { trackerDaysClosedBefore } from '../processors/usage/close-usage-streams.ts';
import {
  deleteOldDeliveries,
  expireDeliveries,
  expiringPayloads,
} from '../processors/webhooks/expire-deliveries.ts';
import { forgetDeletedEndpoints } from '../processors/webhooks/forget-endpoints.ts';
import { forgetLookupStream, lookups } from '../projections/lookup/lookups.ts';
import { forgetExpiredRevealsBefore } from '../projections/reveals/reveals.ts';
import { forgetExpiredSessionsBefore } from '../projections/sessions/sessions.ts';
import { forgetSignalsOf } from '../projections/signals/signals.ts';
import { deliveries, forgetDeliveriesBefore } from '../projections/webhooks/deliveries.ts';
import { forgetSubscriptionsBefore } from '../projections/webhooks/endpoints.ts';
import { followersOf } from './groups.ts';
import type { Runtime } from './runtime.ts';

const PROJECTED_MS = 10_000;
/** A long sweep ends before its next run is due. */
const RUN_MS = 45_000;

type Deps = Pick<Runtime, 'store' | 'pool' | 'clock' | 'log' | 'progress'>;
type Run = Pick<SweepOptions, 'signal' | 'forMs' | 'onBlocked'>;

type Options = Omit<SweepOptions, 'consumers'>;

const optionsOf = ({ store, pool, clock, log, progress }: Deps, run: Run): Options => ({
  store,
  pool,
  clock,
  log,
  closedBefore: () => trackerDaysClosedBefore({ pool, clock }),
  projected: (name: string, position: Position | null) => progress.reached([name], position, PROJECTED_MS),
  ...run,
});

const sweepOf = (kind: Expiring, options: Options): Promise<void> =>
  sweep(kind, { ...options, consumers: followersOf(kind.prefix) });

/** Lists the jobs that delete expired sessions and receipts, the keys of their days, and later their expiry events. */
export const retentionJobs = (runtime: Runtime, metrics: Metrics, signal: AbortSignal): Job[] => {
  const options = optionsOf(runtime, { signal, forMs: RUN_MS, onBlocked: metrics.expiryBlocked });
  for (const { name } of [expiringSessions, expiringReveals, expiringPayloads])
    metrics.expiryBlocked(name, 0, 0);
  // Another process reports these metrics from then on.
  signal.addEventListener('abort', metrics.expiryNotMine);
  return [
    ['10 * * * * *', () => sweepOf(expiringSessions, options)],
    ['40 * * * * *', () => sweepOf(expiringReveals, options)],
    ['20 * * * * *', () => sweepOf(expiringPayloads, { ...options, closedBefore: noDay(runtime) })],
    ['30 * * * * *', () => expireDeliveries({ ...runtime, ...deliveriesAt(runtime), signal })],
    ['5 * * * * *', () => snapshotOldEnrichments(runtime, options)],
    ['0 * * * * *', () => forgetOldSignals(runtime, options)],
    ['50 * * * * *', () => runtime.dayKeys.destroyExpired()],
    ['43 3 * * *', () => forgetWhatExpired(runtime)],
    ['53 3 * * *', () => forgetOldDeliveries(runtime)],
    ['3 4 * * *', () => forgetOldEndpoints(runtime)],
    ['23 4 * * *', () => forgetNames(runtime)],
  ];
};

/** Deletes expiry events past their retention. */
export const forgetWhatExpired = ({ store, pool, clock }: Deps): Promise<void> =>
  deleteExpiredStreams({ store, pool, clock, consumers: followersOf(EXPIRED_PREFIX) }, async (before) => {
    await forgetExpiredSessionsBefore(pool, before);
    await forgetExpiredRevealsBefore(pool, before);
  });

/** Payloads are in no daily count, so their deletion need not wait for one. */
const noDay =
  ({ clock }: Pick<Deps, 'clock'>) =>
  (): Promise<string> =>
    Promise.resolve(utcDay(clock.now()));

const deliveriesAt = ({ progress }: Deps) => ({
  projected: (position: Position | null) => progress.reached([deliveries.name], position, PROJECTED_MS),
});

/** Deletes delivery metadata past its retention. */
export const forgetOldDeliveries = ({ store, pool, clock }: Deps): Promise<void> =>
  deleteOldDeliveries({ store, pool, clock }, followersOf(DELIVERIES_PREFIX), (before) =>
    forgetDeliveriesBefore(pool, before),
  );

export const snapshotOldEnrichments = (
  { store, pool, clock, log, digest }: Deps & Pick<Runtime, 'digest'>,
  run: Run,
): Promise<void> =>
  snapshotEnrichments({ store, pool, clock, log, digest, consumers: followersOf(ENRICHMENT_PREFIX), ...run });

/** Forgets deleted endpoints past their retention, and subscriptions that have ended. */
export const forgetOldEndpoints = ({ store, pool, clock }: Deps): Promise<void> =>
  forgetDeletedEndpoints({ store, pool, clock, consumers: followersOf(WEBHOOKS_PREFIX) }, (before) =>
    forgetSubscriptionsBefore(pool, before),
  );

/** Forgets results that no partner has asked for in 400 days. */
export const forgetOldResults = (
  { store, pool, clock, progress, digest }: Deps & Pick<Runtime, 'digest'>,
  signal: AbortSignal,
): Promise<void> =>
  forgetResults(
    {
      store,
      pool,
      clock,
      digest,
      consumers: followersOf(ENRICHMENT_PREFIX),
      projected: (position) => progress.reached([lookups.name], position, PROJECTED_MS),
      signal,
    },
    (stream) => forgetLookupStream(pool, stream),
  );

const forgetOldSignals = (
  { store, pool, clock, log }: Deps,
  run: Pick<ExpireSignalsOptions, 'signal' | 'onBlocked'>,
): Promise<void> =>
  expireSignals({ store, pool, clock, log, consumers: followersOf(SIGNALS_PREFIX), ...run }, (day) =>
    forgetSignalsOf(pool, day),
  );

/** Sweeps everything that has expired and may be deleted, without a time limit. */
export const sweepToEnd = async (deps: Deps): Promise<void> => {
  const options = optionsOf(deps, {
    signal: new AbortController().signal,
    forMs: Number.POSITIVE_INFINITY,
    onBlocked: () => undefined,
  });
  await sweepOf(expiringSessions, options);
  await sweepOf(expiringReveals, options);
  await sweepOf(expiringPayloads, { ...options, closedBefore: noDay(deps) });
  const { signal } = new AbortController();
  await expireDeliveries({ ...deps, ...deliveriesAt(deps), signal });
  await forgetOldSignals(deps, options);
};
