import type { FastifyInstance } from 'fastify';
import { submitLookup } from '../commands/lookup/submit-lookup.ts';
import { createTrackerCommands } from '../commands/trackers/manage-trackers.ts';
import { createLookupCounter } from '../commands/usage/count-lookups.ts';
import { createTrackerCallCounter } from '../commands/usage/count-tracker-calls.ts';
import { MINUTE } from '../domain/kernel/time.ts';
import type { Position } from '../event-store/port.ts';
import { docsRoutes } from '../http/docs-page.ts';
import type { ErrorCode } from '../http/error-catalog.ts';
import { TrackingUnavailable } from '../http/failures.ts';
import { healthRoute } from '../http/health.ts';
import { openApiDocument, openApiRoute } from '../http/openapi.ts';
import { createServedHosts } from '../http/own-host.ts';
import type { CallingKey, Route } from '../http/route.ts';
import { buildServer } from '../http/server.ts';
import { createConnectionGroup, createRequestGroup } from '../http/visitor.ts';
import type { Config } from '../platform/config.ts';
import type { Leases } from '../platform/leases.ts';
import type { Metrics } from '../platform/metrics.ts';
import { createRateLimiter, type Verdict } from '../platform/rate-limit.ts';
import { shareNext } from '../platform/share-next.ts';
import { createKeyUses } from '../processors/partners/key-uses.ts';
import { createDomainDirectory } from '../queries/domains/directory.ts';
import { createAuthenticate } from '../queries/partners/calling-keys.ts';
import { createTrackerDirectory } from '../queries/trackers/directory.ts';
import { createFreshLookups, createInFlight, getLookupRoute } from '../read-api/lookup/get-lookup.ts';
import { listTrackersRoute } from '../read-api/trackers/list-trackers.ts';
import { pixelRoute } from '../read-api/trackers/pixel.ts';
import { trackerUsageRoute } from '../read-api/trackers/tracker-usage.ts';
import { getUsageRoute } from '../read-api/usage/get-usage.ts';
import { postLookupRoute } from '../write-api/lookup/post-lookup.ts';
import { trackerRoutes } from '../write-api/trackers/trackers.ts';
import { buildDashboard } from './dashboard.ts';
import { enrichmentCapacity } from './modules/capacity.ts';
import { buildDomains } from './modules/domains.ts';
import { buildTracking } from './modules/sessions.ts';
import { openClues } from './modules/signals.ts';
import { buildWebhooks } from './modules/webhooks.ts';
import type { Runtime } from './runtime.ts';

/** Time limit of waiting for a caller's own write; after it the write is accepted anyway. */
const OWN_WRITE_MS = 1_000;
/** Time limit of a read that must see all earlier writes; after it the read fails. */
const CAUGHT_UP_MS = 4_000;
const SETTLED_MS = 1_000;
/** Time limit of the feed's wait; after it the feed returns what it has, and its cursor still misses nothing later. */
const FEED_MS = 1_000;

export interface Api {
  readonly app: FastifyInstance;
  close(): Promise<void>;
}

/** Builds the partners' API: routes, limits and counting. */
export const buildApi = async (
  runtime: Runtime,
  leases: Pick<Leases, 'alone'>,
  publicUrl: string,
  healthy: () => boolean,
  metrics?: Metrics,
): Promise<Api> => {
  const { config, log, clock, pool, db, store, intake, progress, processed, digest } = runtime;
  const limiter = createRateLimiter({ pool, clock, alone: leases.alone });
  const counter = createLookupCounter(store, clock);

  const head = shareNext(store.head);
  /** Waits for the store's current head; a projection that an event has stopped delays only its own reads. */
  const caughtUp = (names: readonly string[]) => async (): Promise<boolean> =>
    progress.reached(names, await head(), CAUGHT_UP_MS);
  /** Waits briefly until these read models have the caller's own write. */
  const ownWrite = (names: readonly string[]) => (position: Position | null) =>
    progress.reached(names, position, OWN_WRITE_MS);
  const admit = admission(limiter.admit, config);
  const keyUses = createKeyUses(runtime);

  const trackerCommands = createTrackerCommands(store, config.TRACKERS_PER_PARTNER);
  const trackers = createTrackerDirectory({ pool, caughtUp: caughtUp(['trackers']) });
  const calls = createTrackerCallCounter(store, clock);
  const domainNames = createDomainDirectory(pool);
  const served = createServedHosts(publicUrl, domainNames.trackerOf);
  const trackingRoutes = await buildTracking({
    runtime,
    limiter,
    trackers,
    collectsOn: served.collectsOn,
    trackerRefusal: trackerCommands.refusal,
    caughtUp: async () => progress.reached(['sessions', 'reveals'], await head(), FEED_MS),
    countCapture: calls.capture,
    countCall: async ({ userId }, trackerId, call = { completed: true, company: false }) => {
      // Dashboard reads do not count as API requests.
      if (userId !== undefined) return;
      await calls.call(trackerId, call).catch((cause) => {
        throw new TrackingUnavailable('a call was not counted', { cause });
      });
    },
    metrics,
  });

  const clues = openClues(runtime, metrics);
  const fresh = createFreshLookups(runtime.lookupUses);
  const inFlight = createInFlight(config.LOOKUP_CAPACITY);
  const lookupDeps = {
    store,
    digest,
    intake,
    capacity: enrichmentCapacity(runtime, limiter),
    settlementsCaughtUp: async () => {
      await processed.reached(['settle-ended-work'], await store.head(), SETTLED_MS);
    },
  };

  const routes: Route[] = [
    postLookupRoute({
      count: counter.count,
      cluesOf: clues.of,
      fresh,
      inFlight,
      submit: (request, context) => submitLookup(lookupDeps, request, context),
      projected: ownWrite(['lookups']),
    }),
    getLookupRoute({
      pool,
      count: counter.count,
      cluesOf: clues.of,
      fresh,
      inFlight,
      caughtUp: caughtUp(['lookups']),
      // Polls are frequent and not urgent, so they must not make projections hurry.
      hasCaughtUp: async (withinMs) => progress.reached(['lookups'], await head(), withinMs, 'patient'),
    }),
    getUsageRoute({ db, caughtUp: caughtUp(['usage', 'lookups', 'reveals', 'reveal-units']) }),
    trackerUsageRoute({
      db,
      caughtUp: caughtUp(['trackers', 'tracker-usage', 'reveals', 'reveal-units']),
    }),
    listTrackersRoute(db, publicUrl),
    ...trackerRoutes({
      commands: trackerCommands,
      publicUrl,
      projected: ownWrite(['trackers']),
      changed: trackers.forget,
    }),
    ...trackingRoutes,
    ...buildDomains({
      runtime,
      publicUrl,
      trackers,
      trackerAbsence: trackerCommands.absence,
      changed: domainNames.forget,
      caughtUp,
      ownWrite,
    }),
    ...buildWebhooks({
      runtime,
      trackerKnown: async (partnerId, trackerId) =>
        (await trackerCommands.refusal(partnerId, trackerId)) !== 'tracker_deleted',
      caughtUp,
      ownWrite,
    }),
    pixelRoute(trackers, served.collectsOn),
    healthRoute(healthy),
  ];
  const dashboard = buildDashboard({ runtime, limiter, routes, admit, ownWrite, caughtUp });
  const app = buildServer({
    routes: [
      ...routes,
      openApiRoute(openApiDocument(routes, { publicUrl })),
      ...docsRoutes(),
      ...dashboard.routes,
    ],
    authenticate: createAuthenticate(pool, clock),
    admit: (key, route) => {
      keyUses.note(key);
      return admit(key, route);
    },
    isCustomDomain: served.isCustomDomain,
    isHttps: publicUrl.startsWith('https:'),
    connectionLimits: {
      inAll: config.MAX_CONNECTIONS,
      perAddress: config.MAX_CONNECTIONS_PER_ADDRESS,
      groupOf: createConnectionGroup(config.TRUSTED_PROXIES),
    },
    // A caller that waits for each response has at most one running request per connection.
    requestLimit: {
      perCaller: config.MAX_CONNECTIONS_PER_ADDRESS,
      callerOf: createRequestGroup(config.TRUSTED_PROXIES),
    },
    clock,
    log,
    onAnswer: ({ method, path }, status, milliseconds) =>
      metrics?.answers.observe({ route: `${method} ${path}`, status }, milliseconds / 1_000),
  });
  return {
    app,
    close: async () => {
      await app.close();
      await counter.close();
      await calls.close();
      await clues.close();
      await keyUses.close();
      await dashboard.close();
    },
  };
};

type Admit = (name: string, ceiling: number, windowMs?: number) => Verdict | Promise<Verdict>;
type Refusal = { readonly code: ErrorCode; readonly retryAfter: number } | null;

/**
 * Checks the key's rate, then the partner's budget, then the service's, so that a greedy key takes nothing from other
 * partners. Synchronous where possible, because a promise per request is measurable.
 */
const admission = (
  admit: Admit,
  ceilings: Pick<Config, 'API_REQUESTS_PER_SECOND' | 'WEBHOOK_MANAGEMENT_PER_MINUTE'>,
) => {
  const api = () => spend('api_rate_limit', admit('api', ceilings.API_REQUESTS_PER_SECOND), admitted);
  const webhooks = (partnerId: string) => () =>
    spend(
      'webhook_management_limit',
      admit(`webhooks of ${partnerId}`, ceilings.WEBHOOK_MANAGEMENT_PER_MINUTE, MINUTE),
      api,
    );
  return (key: CallingKey, { budget }: Route) =>
    spend(
      'rate_limit',
      admit(`key ${key.key_id}`, key.requests_per_second),
      budget === 'webhooks' ? webhooks(key.partner_id) : api,
    );
};

const admitted = (): null => null;

const spend = (
  code: ErrorCode,
  verdict: Verdict | Promise<Verdict>,
  next: () => Refusal | Promise<Refusal>,
): Refusal | Promise<Refusal> => {
  if (verdict instanceof Promise) return verdict.then((later) => spend(code, later, next));
  return verdict === null ? next() : { code, retryAfter: Math.ceil(verdict.retryMs / 1_000) };
};
