import { Resolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { type RetryDeps, retryDelivery } from '../../commands/webhooks/retry-deliveries.ts';
import type { Position } from '../../event-store/port.ts';
import type { Route } from '../../http/contract/route.ts';
import { createListener } from '../../platform/listener.ts';
import { shortCache } from '../../platform/loaders.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { destinationPolicy } from '../../processors/webhooks/delivery/addresses.ts';
import { startDeliveries } from '../../processors/webhooks/delivery/deliver.ts';
import { createSender, signatureHeaders } from '../../processors/webhooks/delivery/sender.ts';
import { reserveForDelivery } from '../../processors/webhooks/queue-admission.ts';
import { reveals } from '../../projections/reveals/reveals.ts';
import { sessions } from '../../projections/sessions/sessions.ts';
import { trackers } from '../../projections/trackers/trackers.ts';
import { DELIVERIES_CHANNEL, deliveries } from '../../projections/webhooks/deliveries.ts';
import { webhooks } from '../../projections/webhooks/endpoints.ts';
import { payloads } from '../../projections/webhooks/payloads.ts';
import { findDomainOwner } from '../../queries/domains/directory.ts';
import { createBodies, createStoredBodies, createTargets } from '../../queries/webhooks/webhooks.ts';
import { deliveryReadRoutes, findShownDelivery } from '../../read-api/webhooks/deliveries.ts';
import { retryDeliveryRoute } from '../../write-api/webhooks/deliveries.ts';
import type { ApiContext } from '../api-context.ts';
import type { Runtime } from '../runtime.ts';
import type { RunningWork } from '../worker-context.ts';

/**
 * Read models that a receiver may query when it gets an event: the session or receipt, its tracker, the endpoint and the
 * delivery. Other read models, such as usage, may be late or stopped without delaying a first attempt.
 */
const READ_BACK = [trackers, sessions, reveals, webhooks, deliveries, payloads];
const PROJECTED_MS = 10_000;
/** Of a query to a DNS server; an attempt waits three seconds for all of them. */
const DNS = { timeout: 1_000, tries: 3 } as const;

/** Builds the routes of deliveries and their retry. */
export const deliveryRoutes = ({ runtime, caughtUp, ownWrite }: ApiContext): Route[] => {
  const { db, pool, clock, dayKeys, cursors } = runtime;
  const retrying = retryDeps(runtime);
  const reads = { db, caughtUp: caughtUp([webhooks.name, deliveries.name, payloads.name]) };
  const bodyOf = createBodies(pool, dayKeys, clock.now);
  return [
    ...deliveryReadRoutes({ ...reads, bodyOf, cursors }),
    retryDeliveryRoute({
      find: (...which) => findShownDelivery(reads, ...which),
      retry: (delivery, context) => retryDelivery(retrying, delivery, context),
      projected: ownWrite([deliveries.name]),
      bodyOf,
    }),
  ];
};

export const retryDeps = ({ store, endpoints, pool, dayKeys, clock, queue }: Runtime): RetryDeps => {
  const bodyOf = createBodies(pool, dayKeys, clock.now);
  return {
    store,
    endpoints,
    hasBody: async (eventId) => (await bodyOf(eventId)) !== null,
    reserveQueue: reserveForDelivery(queue),
  };
};

/** Starts sending due deliveries; any number of processes may do so. */
export const startDelivering = async (runtime: Runtime, metrics: Metrics): Promise<RunningWork> => {
  const { config, store, pool, clock, log, progress, dayKeys, databaseUrl: url } = runtime;
  const { WEBHOOK_EXTRA_CA_FILE: caFile } = config;
  const owners = shortCache((hostname) => findDomainOwner(pool, hostname), { max: 1_000 });
  const sender = createSender({
    policy: destinationPolicy(config),
    clock,
    resolver: new Resolver(DNS),
    extraCa: caFile === undefined ? null : await readFile(caFile, 'utf8'),
    isOwnDomain: async (hostname, partnerId) => {
      try {
        return (await owners.find(hostname)) === partnerId;
      } catch {
        // An unavailable database must not count as the receiver's failure.
        return false;
      }
    },
  });
  const projected = async (position: Position | null): Promise<boolean> =>
    progress.reached([deliveries.name], position ?? (await store.head()), PROJECTED_MS, 'patient');
  const worker = startDeliveries({
    store,
    pool,
    clock,
    log,
    projections: READ_BACK.map(({ name }) => name),
    projected,
    targetsOf: createTargets(runtime),
    bodyOf: createStoredBodies(pool, dayKeys, clock.now),
    sign: signatureHeaders,
    send: sender.send,
    concurrency: config.WEBHOOK_CONCURRENCY,
    endpointsPerPartner: config.WEBHOOKS_PER_PARTNER,
    startsPerSecond: config.WEBHOOK_STARTS_PER_SECOND,
    retryBaseMs: config.RETRY_BASE_SECONDS * 1_000,
    random: Math.random,
    onStart: metrics.deliveries.started,
    onOutcome: metrics.deliveries.ended,
    onWatched: metrics.deliveries.watched,
  });
  const listener = createListener({
    url,
    name: 'doorplate deliveries',
    channels: [DELIVERIES_CHANNEL],
    onNotification: (_channel, payload) => worker.onNotification(payload),
    // Polls once connected, because earlier notifications were missed.
    ready: () => worker.onNotification(''),
  });
  listener.ensure();
  return {
    stop: async () => {
      await listener.close();
      await worker.stop();
      await sender.close();
    },
  };
};
