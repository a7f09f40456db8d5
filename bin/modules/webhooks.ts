import { Resolver } from 'node:dns/promises';
import { createEndpointCommands } from '../../commands/webhooks/manage-endpoints.ts';
import { createRequestRecovery } from '../../commands/webhooks/recover-deliveries.ts';
import { type RetryDeps, retryDelivery } from '../../commands/webhooks/retry-deliveries.ts';
import { createSendTest } from '../../commands/webhooks/send-test.ts';
import { DAY } from '../../domain/kernel/time.ts';
import type { DestinationPolicy } from '../../domain/webhooks/destination.ts';
import { CYCLE_ATTEMPTS, CYCLE_MS } from '../../domain/webhooks/schedule.ts';
import type { Position } from '../../event-store/port.ts';
import type { Route } from '../../http/contract/route.ts';
import { sealText } from '../../platform/crypto/master-key.ts';
import { shortCache } from '../../platform/limits/loaders.ts';
import { Listener } from '../../platform/postgres/notifications.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import { readText } from '../../platform/text-file.ts';
import { destinationPolicy } from '../../processors/webhooks/delivery/addresses.ts';
import { sweepDeliveryClaims } from '../../processors/webhooks/delivery/claims.ts';
import { startDeliveries } from '../../processors/webhooks/delivery/deliver.ts';
import { createSender, type Sender, signatureHeaders } from '../../processors/webhooks/delivery/sender.ts';
import { reserveForDelivery } from '../../processors/webhooks/queue-admission.ts';
import { queueWebhookEvents } from '../../processors/webhooks/queue-webhook-events.ts';
import { recoverDeliveries } from '../../processors/webhooks/recover-deliveries.ts';
import { reveals } from '../../projections/reveals/reveals.ts';
import { sessions } from '../../projections/sessions/sessions.ts';
import { trackers } from '../../projections/trackers/trackers.ts';
import { isHeldBack, readDue } from '../../projections/webhooks/deliveries/health-readers.ts';
import { DELIVERIES_CHANNEL, deliveries } from '../../projections/webhooks/deliveries/projection.ts';
import { countDeliveries } from '../../projections/webhooks/deliveries/readers.ts';
import { countRecoverable } from '../../projections/webhooks/deliveries/recovery-readers.ts';
import { endpoints } from '../../projections/webhooks/endpoints/projection.ts';
import { createTargets } from '../../projections/webhooks/endpoints/readers.ts';
import { payloads } from '../../projections/webhooks/payloads/projection.ts';
import {
  type BodiesToSend,
  createBodies,
  createBodiesToSend,
} from '../../projections/webhooks/payloads/readers.ts';
import { findDomainOwner } from '../../queries/domains/directory.ts';
import { openSecrets } from '../../queries/sessions/sessions.ts';
import type { TotalsOf } from '../../read-api/webhooks/answer.ts';
import { deliveryReadRoutes, findShownDelivery } from '../../read-api/webhooks/deliveries.ts';
import type { WebhookLimits } from '../../read-api/webhooks/endpoint-schemas.ts';
import { webhookReadRoutes } from '../../read-api/webhooks/endpoints.ts';
import { recoveryReadRoute } from '../../read-api/webhooks/recoveries.ts';
import { retryDeliveryRoute, webhookTestRoute } from '../../write-api/webhooks/deliveries.ts';
import { webhookRoutes as changingRoutes } from '../../write-api/webhooks/endpoints.ts';
import { recoverRoute } from '../../write-api/webhooks/recoveries.ts';
import type { ApiContext } from '../api-context.ts';
import type { Runtime } from '../runtime.ts';
import type { RunningWork, WorkerContext, WorkerModule } from '../worker-context.ts';

/**
 * Read models that a receiver may query when it gets an event: the session or receipt and its tracker, the endpoint and the
 * delivery. Other read models, such as usage, may be late or stopped without delaying a first attempt.
 */
const READ_BACK = {
  sources: [trackers, sessions, reveals].map(({ name }) => name),
  projections: [endpoints, deliveries, payloads].map(({ name }) => name),
};
const PROJECTED_MS = 10_000;
/** Limits one query to a DNS server; a lookup takes three seconds for all of its queries. */
const DNS = { timeout: 1_000, tries: 3 } as const;

function deliveryRoutes({ runtime, waitForHead, ownWrite }: ApiContext): Route[] {
  const { db, pool, clock, dayKeys, cursors } = runtime;
  const retrying = retryDeps(runtime);
  const reads = { db, waitForHead: waitForHead([endpoints.name, deliveries.name, payloads.name]) };
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
}

/** A recovery may cover more: its answer names so many at most. */
const MOST_COUNTED = 1_000_000;

function recoveryRoutes({ runtime, waitForHead, ownWrite }: ApiContext): Route[] {
  const { db, pool, queue } = runtime;
  const wait = waitForHead([endpoints.name, deliveries.name]);
  const recover = createRequestRecovery({
    endpoints: runtime.endpoints,
    reserveQueue: reserveForDelivery(queue),
    isHeldBack: async (webhookId) => {
      await wait();
      return isHeldBack(pool, webhookId);
    },
    count: (webhookId, since, heldBack, now) =>
      countRecoverable(pool, { webhookId, since, heldBack, now }, MOST_COUNTED),
  });
  return [
    recoverRoute({ recover, projected: ownWrite([deliveries.name]) }),
    recoveryReadRoute({ db, waitForHead: wait }),
  ];
}

function retryDeps(runtime: Runtime): RetryDeps {
  const bodyOf = createBodies(runtime.pool, runtime.dayKeys, runtime.clock.now);
  return {
    ...runtime,
    hasBody: async (eventId) => (await bodyOf(eventId)) !== null,
    reserveQueue: reserveForDelivery(runtime.queue),
  };
}

/** Opens a sender of webhooks. `isOwnDomain`: whether a host name is an active custom domain of a partner. */
export async function openSender(
  { config, clock }: Pick<Runtime, 'config' | 'clock'>,
  policy: DestinationPolicy,
  isOwnDomain: (hostname: string, partnerId: string) => Promise<boolean>,
): Promise<Sender> {
  const { WEBHOOK_EXTRA_CA_FILE: caFile } = config;
  const extraCa = caFile === undefined ? null : readText(caFile);
  return createSender({ policy, clock, resolver: new Resolver(DNS), extraCa, isOwnDomain });
}

/** Starts sending due deliveries; any number of processes may do so. */
export async function startDelivering(
  runtime: Runtime,
  metrics: Metrics,
  bodies: BodiesToSend,
): Promise<RunningWork> {
  const { config, store, pool, progress, databaseUrl: url } = runtime;
  const owners = shortCache((hostname) => findDomainOwner(pool, hostname), { max: 1_000 });
  const sender = await openSender(runtime, destinationPolicy(config), async (hostname, partnerId) => {
    try {
      return (await owners.find(hostname)) === partnerId;
    } catch {
      // An unavailable database must not count as the receiver's failure.
      return false;
    }
  });
  const projected = async (position: Position | null): Promise<boolean> =>
    progress.reached([deliveries.name], position ?? (await store.head()), PROJECTED_MS, 'patient');
  const worker = startDeliveries({
    ...runtime,
    ...READ_BACK,
    projected,
    targetsOf: createTargets(runtime),
    bodyOf: bodies.of,
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
  const listener = new Listener({
    url,
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
}

/** Builds the routes of webhook endpoints and their deliveries. */
export function webhookRoutes(context: ApiContext): Route[] {
  const { runtime, trackerCommands, waitForHead, ownWrite } = context;
  const { config, clock, db, pool, master, queue } = runtime;
  const commands = createEndpointCommands({
    batcher: runtime.endpoints,
    limit: config.WEBHOOKS_PER_PARTNER,
    destinations: destinationPolicy(config),
    seal: (secret, webhookId) => sealText(master, secret, webhookId),
    trackerKnown: async (partnerId, trackerId) =>
      (await trackerCommands.refusal(partnerId, trackerId)) !== 'tracker_deleted',
  });
  const totalsOf: TotalsOf = (webhookIds) => countDeliveries(db, webhookIds, clock.now());
  return [
    ...webhookReadRoutes({
      db,
      waitForHead: waitForHead([endpoints.name]),
      limits: limitsOf(config),
      totalsOf,
      queueState: (partnerId, now) => readDue(pool, partnerId, now),
    }),
    ...changingRoutes({
      commands,
      projected: ownWrite([endpoints.name, deliveries.name]),
      changed: queue.endpointsChanged,
      totalsOf,
    }),
    webhookTestRoute({
      sendTest: createSendTest({ ...runtime, reserveQueue: reserveForDelivery(queue) }),
      projected: ownWrite([deliveries.name, payloads.name]),
    }),
    ...deliveryRoutes(context),
    ...recoveryRoutes(context),
  ];
}

export function webhookWork({ runtime, metrics }: WorkerContext): WorkerModule {
  const { pool, clock, dayKeys, progress, tail, otherProcesses } = runtime;
  const bodies = createBodiesToSend(pool, dayKeys, clock.now);
  const queueing = queueWebhookEvents({
    ...runtime,
    onStored: bodies.remember,
    readModels: progress,
    // Without others the tail is enough, and no position is saved for it.
    wake: (to) => {
      if (otherProcesses.run()) progress.hurry(Object.values(READ_BACK).flat(), to);
      else tail.hurry(to);
    },
    labelsOf: async (rows) => (await openSecrets(rows, dayKeys)).map((secrets) => secrets?.custom ?? null),
  });
  const recovering = {
    ...runtime,
    projected: (position: Position | null) => progress.reached([deliveries.name], position, PROJECTED_MS),
    reserveQueue: reserveForDelivery(runtime.queue),
  };
  return {
    processors: { webhooks: [queueing] },
    jobs: (signal) => [
      ['* * * * *', () => sweepDeliveryClaims(pool, clock.now())],
      ['*/5 * * * * *', () => recoverDeliveries({ ...recovering, signal })],
    ],
    start: () => startDelivering(runtime, metrics, bodies),
  };
}

/** The contract also fixes the limits that are not configured. */
const limitsOf = (config: Runtime['config']): WebhookLimits => ({
  endpoints: config.WEBHOOKS_PER_PARTNER,
  management_per_minute: config.WEBHOOK_MANAGEMENT_PER_MINUTE,
  pending_deliveries: config.WEBHOOK_QUEUE_PER_PARTNER,
  concurrent_per_endpoint: config.WEBHOOK_CONCURRENCY,
  starts_per_second_per_endpoint: config.WEBHOOK_STARTS_PER_SECOND,
  event_bytes: 1_048_576,
  timeout_seconds: 10,
  attempts: CYCLE_ATTEMPTS,
  retry_days: CYCLE_MS / DAY,
});
