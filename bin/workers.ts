import type { CommandContext } from '../commands/handle.ts';
import { requestForReveal } from '../commands/lookup/request-for-reveal.ts';
import { DAY, utcDay } from '../domain/kernel/time.ts';
import { INTAKE_KEPT_DAYS } from '../domain/lookup/intake.ts';
import { CHECKPOINTS_CHANNEL, DUE_CHANNEL } from '../platform/channels.ts';
import type { Leases } from '../platform/leases.ts';
import { createListener } from '../platform/listener.ts';
import { LOGIN_RATES, LOGIN_WINDOW } from '../platform/logins.ts';
import type { Metrics } from '../platform/metrics.ts';
import { endsWithin } from '../platform/pause.ts';
import { createRateLimiter, sweepRates, VISITOR_RATES } from '../platform/rate-limit.ts';
import { billCompletedReveals } from '../processors/billing/bill-completed-reveals.ts';
import { sweepClaims } from '../processors/claims.ts';
import { keepDomains } from '../processors/domains/keep-domains.ts';
import { startEnrichmentAttempts } from '../processors/lookup/attempt-enrichments.ts';
import { enrichReveals, retryRefusedReveals } from '../processors/lookup/enrich-reveals.ts';
import { forgetProviderDays } from '../processors/lookup/provider-counts.ts';
import { settleEndedWork } from '../processors/lookup/settle-ended-work.ts';
import { submitLeftReservations } from '../processors/lookup/submit-left-reservations.ts';
import { truncateIntakes } from '../processors/lookup/truncate-intakes.ts';
import { closeTrackerDays } from '../processors/usage/close-tracker-days.ts';
import { closeUsageStreams, expireUsageStreams } from '../processors/usage/close-usage-streams.ts';
import { projectionGroups } from '../projections/all.ts';
import { forgetReservationsBefore } from '../projections/lookup/lookups.ts';
import { forgetUsageBefore } from '../projections/usage/lookup-counts.ts';
import { createRevealableSessions } from '../queries/sessions/revealable-sessions.ts';
import { leadGroups, UPKEEP } from './groups.ts';
import { enrichmentCapacity } from './modules/capacity.ts';
import { startDelivering } from './modules/deliveries.ts';
import { startDomains } from './modules/domains.ts';
import { type openChain, openProviders } from './modules/providers.ts';
import { buildWebhookNotifications } from './modules/webhook-notifications.ts';
import { periodically } from './periodically.ts';
import { forgetOldResults, retentionJobs } from './retention.ts';
import type { Runtime } from './runtime.ts';

const CAUGHT_UP_MS = 4_000;
const PART_MS = 5_000;
const ONLY_SAMPLE =
  'companies come from the sample directory alone: ENRICHMENT_DIRECTORY takes a file of yours, ENRICHMENT_PROVIDERS the database or API of a vendor (docs/providers.md)';
/** Days for which questions to providers are counted, as for usage. */
const PROVIDER_DAYS_KEPT = 400;

export interface Workers {
  /** Returns the projections and processors that a poison event has stopped. */
  stopped(): readonly string[];
  close(): Promise<void>;
}

/** Starts projections, processors and scheduled jobs; any number of processes may. `makeChain`: opens the providers. */
export const startWorkers = async (
  runtime: Runtime,
  leases: Leases,
  metrics: Metrics,
  makeChain?: typeof openChain,
): Promise<Workers> => {
  const {
    config,
    log,
    clock,
    pool,
    db,
    store,
    intake,
    digest,
    dayKeys,
    databaseUrl: url,
    progress,
  } = runtime;
  const stopped = new Set<string>();
  const streams = { store, digest, intake };
  const configured = () => runtime.providers.configured();
  const limiter = createRateLimiter({ pool, clock, alone: () => false });
  const capacity = enrichmentCapacity(runtime, limiter);
  const sessions = createRevealableSessions({
    db,
    dayKeys,
    clock,
    caughtUp: async () => progress.reached(['sessions'], await store.head(), CAUGHT_UP_MS),
  });
  const notifications = buildWebhookNotifications(runtime, sessions);
  const revealing = {
    pool,
    clock,
    digest,
    addressOf: sessions.addressOf,
    onAwaited: notifications.onAwaited,
    request: (ip: string, partnerId: string, context: CommandContext) =>
      requestForReveal({ store, digest, capacity }, ip, partnerId, context),
  };
  const { lookups, visits, webhooks, signals } = projectionGroups;
  const saveCheckpoints = leadGroups(
    leases,
    [
      {
        ...lookups,
        processors: [settleEndedWork(streams, clock)],
      },
      {
        ...visits,
        processors: [
          enrichReveals(revealing),
          billCompletedReveals(store, clock),
          notifications.completing,
          keepDomains({ store, pool, clock }),
        ],
      },
      { ...webhooks, processors: [notifications.queueing] },
      { ...signals, processors: [] },
    ],
    runtime,
    {
      onApplied: (names, lastEventAt) => metrics.applied(names, lastEventAt, clock.now()),
      onStopped: (name) => {
        stopped.add(name);
        metrics.stopped.set({ name }, 1);
      },
      onRunning: (name) => {
        stopped.delete(name);
        metrics.stopped.set({ name }, 0);
      },
    },
  );

  const { chain, notes, close: closeProviders } = await openProviders(runtime, limiter, metrics, makeChain);
  if (config.providers.every((one) => one.kind === 'directory' && one.file === null)) log.info(ONLY_SAMPLE);
  leases.announce(chain.providers.map(({ name }) => name));
  const attempts = startEnrichmentAttempts({
    ...streams,
    pool,
    clock,
    log,
    chain: chain.providers,
    attemptMs: chain.longestMs,
    retryBaseMs: config.RETRY_BASE_SECONDS * 1_000,
    random: Math.random,
    onAttempt: (outcome) => metrics.attempts.inc({ outcome }),
    notes,
  });

  const delivering = await startDelivering(runtime, metrics);
  const domains = startDomains(runtime, metrics);
  const nudge = (): void => {
    attempts.nudge();
    domains.nudge();
  };
  const due = createListener({
    url,
    name: 'doorplate due',
    channels: [DUE_CHANNEL, CHECKPOINTS_CHANNEL],
    onNotification: (channel) => {
      if (channel === DUE_CHANNEL) return nudge();
      // A failed save is retried.
      void saveCheckpoints().catch(() => undefined);
      progress.hurry([]);
    },
    ready: nudge,
  });
  due.ensure();

  leases.lead(UPKEEP, (_lease, signal) =>
    periodically(signal, log, [
      ['*/15 * * * * *', () => submitLeftReservations({ ...streams, configured, pool, clock, log })],
      ['5-55/15 * * * * *', () => retryRefusedReveals(revealing)],
      ['7 * * * *', () => sweepClaims(pool, clock.now())],
      ['* * * * *', () => sweepRates(pool, VISITOR_RATES, clock.now())],
      ['* * * * *', () => sweepRates(pool, LOGIN_RATES, clock.now(), LOGIN_WINDOW)],
      ['*/10 * * * *', () => closeUsageStreams({ store, pool, clock })],
      [
        '*/10 * * * *',
        () =>
          closeTrackerDays({
            store,
            pool,
            clock,
            caughtUp: async () => progress.reached(['tracker-usage'], await store.head(), CAUGHT_UP_MS),
          }),
      ],
      [
        '23 3 * * *',
        () => expireUsageStreams({ store, pool, clock }, (before) => forgetUsageBefore(pool, before)),
      ],
      ['37 3 * * *', () => truncateIntakes({ store, pool, clock })],
      ['47 3 * * *', () => forgetReservationsBefore(pool, utcDay(clock.now() - INTAKE_KEPT_DAYS * DAY))],
      ['57 * * * *', () => forgetOldResults(runtime, signal)],
      ['53 3 * * *', () => forgetProviderDays(pool, utcDay(clock.now() - PROVIDER_DAYS_KEPT * DAY))],
      ...notifications.jobs,
      ...delivering.jobs,
      ...retentionJobs(runtime, metrics, signal),
    ]),
  );

  return {
    stopped: () => [...stopped],
    close: async () => {
      // Concurrently, so that a hanging part does not use up the others' time.
      const parts = [due.close(), attempts.stop(), delivering.stop(), domains.stop()];
      await Promise.allSettled(parts.map((part) => endsWithin(part, PART_MS)));
      await closeProviders();
    },
  };
};
