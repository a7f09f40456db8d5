import { createTrackerCommands } from '../commands/trackers/manage-trackers.ts';
import { deleteEndpoint } from '../commands/webhooks/manage-endpoints.ts';
import { utcDay } from '../domain/kernel/time.ts';
import { ENRICHMENT_PREFIX } from '../domain/lookup/events.ts';
import { EXPIRED_PREFIX } from '../domain/sessions/events.ts';
import { SIGNALS_PREFIX } from '../domain/signals/events.ts';
import { DELIVERIES_PREFIX, WEBHOOKS_PREFIX } from '../domain/webhooks/events.ts';
import type { Position } from '../event-store/port.ts';
import type { Job } from '../platform/clock/periodically.ts';
import { exclusiveJob } from '../platform/postgres/transactions.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import { eraseLateReveals, eraseSessions } from '../processors/erase-sessions.ts';
import { type Expiring, type SweepOptions, sweep } from '../processors/expiry.ts';
import { forgetResults } from '../processors/lookup/forget-results.ts';
import { snapshotEnrichments } from '../processors/lookup/snapshot-enrichments.ts';
import { endPartners } from '../processors/partners/end-partners.ts';
import { forgetNames } from '../processors/retire-streams.ts';
import { expiringReveals } from '../processors/reveals/expiring-reveals.ts';
import { deleteExpiredStreams, expiringSessions } from '../processors/sessions/expire-sessions.ts';
import { expireSignals } from '../processors/signals/expire-signals.ts';
import { trackerDaysClosedBefore } from '../processors/usage/close-usage-streams.ts';
import {
  deleteOldDeliveries,
  expireDeliveries,
  expiringPayloads,
} from '../processors/webhooks/expire-deliveries.ts';
import { forgetDeletedEndpoints } from '../processors/webhooks/forget-endpoints.ts';
import { forgetActivity } from '../projections/activity/activity.ts';
import { forgetLookupStream, lookups } from '../projections/lookup/lookups.ts';
import { forgetExpiredRevealsBefore } from '../projections/reveals/reveals.ts';
import { forgetExpiredSessionsBefore } from '../projections/sessions/sessions.ts';
import { forgetSignalsOf } from '../projections/signals/signals.ts';
import { deliveries, forgetDeliveriesBefore } from '../projections/webhooks/deliveries/projection.ts';
import { forgetSubscriptionsBefore } from '../projections/webhooks/endpoints/projection.ts';
import { followersOf } from './groups.ts';
import type { Runtime } from './runtime.ts';

const PROJECTED_MS = 10_000;
/** A long sweep ends before its next run is due. */
const RUN_MS = 45_000;

type Deps = Pick<Runtime, 'store' | 'pool' | 'clock' | 'log' | 'progress'>;
type Run = Pick<SweepOptions, 'signal' | 'forMs' | 'onBlocked'>;

const projectedIn =
  ({ progress }: Deps) =>
  (name: string, position: Position | null): Promise<boolean> =>
    progress.reached([name], position, PROJECTED_MS);

/** `closedBefore`: the first day whose counts may lack what is deleted; payloads are in no daily count. */
function sweepOf(
  kind: Expiring,
  deps: Deps,
  run: Run,
  closedBefore: SweepOptions['closedBefore'] = () => trackerDaysClosedBefore(deps),
): Promise<void> {
  const { store, pool, clock, log } = deps;
  const consumers = followersOf(kind.prefix);
  return sweep(kind, {
    store,
    pool,
    clock,
    log,
    projected: projectedIn(deps),
    closedBefore,
    consumers,
    ...run,
  });
}

const sweepSessions = (deps: Deps, run: Run) => sweepOf(expiringSessions, deps, run);
const sweepReveals = (deps: Deps, run: Run) => sweepOf(expiringReveals, deps, run);
const sweepPayloads = (deps: Deps, run: Run) =>
  sweepOf(expiringPayloads, deps, run, async () => utcDay(deps.clock.now()));

const expireDueDeliveries = (deps: Deps, signal: AbortSignal): Promise<void> =>
  expireDeliveries({
    ...deps,
    projected: (position) => projectedIn(deps)(deliveries.name, position),
    signal,
  });

/** Lists the jobs that delete expired sessions and receipts, the keys of their days, and later their expiry events. */
export function retentionJobs(runtime: Runtime, metrics: Metrics, signal: AbortSignal): Job[] {
  const run = { signal, forMs: RUN_MS, onBlocked: metrics.expiryBlocked };
  for (const { name } of [expiringSessions, expiringReveals, expiringPayloads])
    metrics.expiryBlocked(name, 0, 0);
  // Another process reports these metrics from then on.
  signal.addEventListener('abort', metrics.expiryNotMine);
  return [
    ['10 * * * * *', () => sweepSessions(runtime, run)],
    ['40 * * * * *', () => sweepReveals(runtime, run)],
    ['20 * * * * *', () => sweepPayloads(runtime, run)],
    ['30 * * * * *', () => expireDueDeliveries(runtime, signal)],
    ['*/15 * * * * *', () => endDeletedPartners(runtime, signal)],
    ['5 * * * * *', () => snapshotOldEnrichments(runtime, run)],
    ['0 * * * * *', () => forgetOldSignals(runtime, run)],
    ['50 * * * * *', () => runtime.dayKeys.destroyExpired()],
    ['43 3 * * *', () => forgetWhatExpired(runtime)],
    ['53 3 * * *', () => forgetOldDeliveries(runtime)],
    ['3 4 * * *', () => forgetOldEndpoints(runtime)],
    ['13 4 * * *', () => forgetActivity(runtime.pool, runtime.clock.now())],
    ['23 4 * * *', () => forgetNames(runtime)],
  ];
}

/** Recorded with the ids of sessions and receipts that a partner's deletion has ended. */
const PARTNER_DELETED = 'partner_deleted';

/** Goes on with the deletion of partners. `onEnded`: called with numbers of sessions that have ended. */
export function endDeletedPartners(
  deps: Deps & Pick<Runtime, 'config' | 'databaseUrl' | 'endpoints'>,
  signal: AbortSignal,
  onEnded: (sessions: number) => void = () => undefined,
): Promise<void> {
  // Not beside an erasure by the command, which may meet the same sessions.
  const alone = <T>(work: () => Promise<T>): Promise<T> => exclusiveJob(deps.databaseUrl, 'erasure', work);
  const erasing = { ...deps, consumersOf: (prefix: string) => followersOf(prefix), signal };
  return endPartners({
    ...deps,
    signal,
    deleteTracker: createTrackerCommands(deps.store, deps.config.TRACKERS_PER_PARTNER).delete,
    deleteEndpoint: (partner_id, webhook_id, context) =>
      deleteEndpoint(deps.endpoints, partner_id, webhook_id, context),
    endSessions: async (sessions) =>
      onEnded((await alone(() => eraseSessions(erasing, sessions, PARTNER_DELETED))).sessions),
    endReveals: (sessionIds) => alone(() => eraseLateReveals(erasing, sessionIds, PARTNER_DELETED)),
    upToDate: async (names) => deps.progress.reached(names, await deps.store.head(), PROJECTED_MS),
  });
}

/** Deletes expiry events past their retention. */
export const forgetWhatExpired = (deps: Deps): Promise<void> =>
  deleteExpiredStreams({ ...deps, consumers: followersOf(EXPIRED_PREFIX) }, async (before) => {
    await forgetExpiredSessionsBefore(deps.pool, before);
    await forgetExpiredRevealsBefore(deps.pool, before);
  });

/** Deletes delivery metadata past its retention. */
export const forgetOldDeliveries = (deps: Deps): Promise<void> =>
  deleteOldDeliveries(deps, followersOf(DELIVERIES_PREFIX), (before) =>
    forgetDeliveriesBefore(deps.pool, before),
  );

export const snapshotOldEnrichments = (deps: Deps & Pick<Runtime, 'digest'>, run: Run): Promise<void> =>
  snapshotEnrichments({ ...deps, consumers: followersOf(ENRICHMENT_PREFIX), ...run });

/** Forgets deleted endpoints past their retention, and subscriptions that have ended. */
export const forgetOldEndpoints = (deps: Deps): Promise<void> =>
  forgetDeletedEndpoints({ ...deps, consumers: followersOf(WEBHOOKS_PREFIX) }, (before) =>
    forgetSubscriptionsBefore(deps.pool, before),
  );

/** Forgets results that no partner has asked for in 400 days. */
export function forgetOldResults(deps: Deps & Pick<Runtime, 'digest'>, signal: AbortSignal): Promise<void> {
  const consumers = followersOf(ENRICHMENT_PREFIX);
  const projected = (position: Position | null) => projectedIn(deps)(lookups.name, position);
  return forgetResults({ ...deps, consumers, projected, signal }, (stream) =>
    forgetLookupStream(deps.pool, stream),
  );
}

const forgetOldSignals = (deps: Deps, run: Run): Promise<void> =>
  expireSignals({ ...deps, consumers: followersOf(SIGNALS_PREFIX), ...run }, (day) =>
    forgetSignalsOf(deps.pool, day),
  );

/** Sweeps everything that has expired and may be deleted, without a time limit. */
export async function sweepToEnd(deps: Deps): Promise<void> {
  const { signal } = new AbortController();
  const run = { signal, forMs: Number.POSITIVE_INFINITY, onBlocked: () => undefined };
  await sweepSessions(deps, run);
  await sweepReveals(deps, run);
  await sweepPayloads(deps, run);
  await expireDueDeliveries(deps, signal);
  await forgetOldSignals(deps, run);
}
