import { submitLookup } from '../../commands/lookup/submit-lookup.ts';
import { DAY, utcDay } from '../../domain/kernel/time.ts';
import { INTAKE_KEPT_DAYS } from '../../domain/lookup/intake.ts';
import type { Route } from '../../http/contract/route.ts';
import { startEnrichmentAttempts } from '../../processors/lookup/attempt-enrichments.ts';
import { forgetProviderDays } from '../../processors/lookup/providers/provider-counts.ts';
import {
  resubmitOrphaned,
  settleEndedWork,
  truncateIntakes,
} from '../../processors/lookup/settle-reservations.ts';
import {
  closeTrackerDays,
  closeUsageStreams,
  expireUsageStreams,
} from '../../processors/usage/close-usage-streams.ts';
import { forgetReservationsBefore } from '../../projections/lookup/lookups.ts';
import { forgetUsageBefore } from '../../projections/usage/lookup-counts.ts';
import { createAnswerCache, createInFlight, getLookupRoute } from '../../read-api/lookup/get-lookup.ts';
import { getUsageRoute } from '../../read-api/usage/get-usage.ts';
import { postLookupRoute } from '../../write-api/lookup/post-lookup.ts';
import type { ApiContext } from '../api-context.ts';
import { forgetOldResults } from '../retention.ts';
import type { RunningWork, WorkerContext, WorkerModule } from '../worker-context.ts';
import { enrichmentCapacity, openProviders } from './providers.ts';

export const usageRoutes = ({ runtime, waitForHead }: ApiContext): Route[] => [
  getUsageRoute({
    db: runtime.db,
    waitForHead: waitForHead(['usage', 'lookups', 'reveals', 'reveal-units']),
  }),
];

export function usageWork({ runtime, waitForHead }: WorkerContext): WorkerModule {
  const closing = { ...runtime, waitForHead: waitForHead(['tracker-usage']) };
  return {
    jobs: () => [
      ['*/10 * * * *', () => closeUsageStreams(runtime)],
      ['*/10 * * * *', () => closeTrackerDays(closing)],
      ['23 3 * * *', () => expireUsageStreams(runtime, (before) => forgetUsageBefore(runtime.pool, before))],
    ],
  };
}

const SETTLED_MS = 1_000;

export function lookupRoutes({
  runtime,
  limiter,
  counter,
  clues,
  erasures,
  waitForHead,
  waitForHeadPassively,
  ownWrite,
}: ApiContext): Route[] {
  const { config, pool, store, intake, digest, processed } = runtime;
  const configured = () => runtime.providers.configured();
  const answerCache = createAnswerCache({
    note: runtime.lookupUses.note,
    configured,
    hearsOfErasures: erasures.isListening,
  });
  erasures.onErased(answerCache.clear);
  const shared = {
    count: counter.count,
    cluesOf: clues.of,
    answerCache,
    inFlight: createInFlight(config.LOOKUP_CAPACITY),
  };
  const submitting = {
    store,
    digest,
    intake,
    configured,
    capacity: enrichmentCapacity(runtime, limiter),
    settlementsCaughtUp: async () => {
      await processed.reached(['settle-ended-work'], await store.head(), SETTLED_MS);
    },
  };
  return [
    postLookupRoute({
      ...shared,
      submitLookup: (request, context) => submitLookup(submitting, request, context),
      projected: ownWrite(['lookups']),
    }),
    getLookupRoute({
      ...shared,
      pool,
      configured,
      waitForHead: waitForHead(['lookups']),
      waitForHeadPassively: waitForHeadPassively(['lookups']),
    }),
  ];
}

const ONLY_SAMPLE =
  'companies come from the sample directory alone: ENRICHMENT_DIRECTORY takes a file of yours, ENRICHMENT_PROVIDERS the database or API of a vendor (docs/providers.md)';

export function lookupWork(context: WorkerContext): WorkerModule {
  const { runtime } = context;
  const { clock, pool } = runtime;
  const configured = () => runtime.providers.configured();
  return {
    processors: { lookups: [settleEndedWork(runtime, clock)] },
    jobs: (signal) => [
      ['*/15 * * * * *', () => resubmitOrphaned({ ...runtime, configured })],
      ['37 3 * * *', () => truncateIntakes(runtime)],
      ['47 3 * * *', () => forgetReservationsBefore(pool, utcDay(clock.now() - INTAKE_KEPT_DAYS * DAY))],
      ['53 3 * * *', () => forgetProviderDays(pool, clock.now())],
      ['57 * * * *', () => forgetOldResults(runtime, signal)],
    ],
    start: () => startAttempts(context),
  };
}

async function startAttempts({
  runtime,
  leases,
  limiter,
  metrics,
  makeChain,
}: WorkerContext): Promise<RunningWork> {
  const { config, log } = runtime;
  const { chain, notes, close } = await openProviders(runtime, limiter, metrics, makeChain);
  if (config.providers.every((one) => one.kind === 'directory' && one.file === null)) log.info(ONLY_SAMPLE);
  leases.announce(chain.providers.map(({ name }) => name));
  const attempts = startEnrichmentAttempts({
    ...runtime,
    chain: chain.providers,
    attemptMs: chain.longestMs,
    retryBaseMs: config.RETRY_BASE_SECONDS * 1_000,
    random: Math.random,
    onAttempt: (outcome) => metrics.attempts.inc({ outcome }),
    notes,
  });
  return {
    nudge: attempts.nudge,
    stop: async () => {
      await attempts.stop();
      await close();
    },
  };
}
