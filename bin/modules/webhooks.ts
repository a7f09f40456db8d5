import { createEndpointCommands } from '../../commands/webhooks/manage-endpoints.ts';
import { createSendTest } from '../../commands/webhooks/send-test.ts';
import { DAY } from '../../domain/kernel/time.ts';
import { CYCLE_ATTEMPTS, CYCLE_MS } from '../../domain/webhooks/schedule.ts';
import type { Route } from '../../http/contract/route.ts';
import { sealText } from '../../platform/master-key.ts';
import { destinationPolicy } from '../../processors/webhooks/delivery/addresses.ts';
import { sweepDeliveryClaims } from '../../processors/webhooks/delivery/claims.ts';
import { reserveForDelivery } from '../../processors/webhooks/queue-admission.ts';
import { queueWebhookEvents } from '../../processors/webhooks/queue-webhook-events.ts';
import { deliveries } from '../../projections/webhooks/deliveries.ts';
import { webhooks } from '../../projections/webhooks/endpoints.ts';
import { payloads } from '../../projections/webhooks/payloads.ts';
import { openSecrets } from '../../queries/sessions/sessions.ts';
import type { TotalsOf } from '../../read-api/webhooks/answer.ts';
import { countDeliveries, countDue } from '../../read-api/webhooks/delivery-queries.ts';
import type { WebhookLimits } from '../../read-api/webhooks/endpoint-schemas.ts';
import { webhookReadRoutes } from '../../read-api/webhooks/endpoints.ts';
import { webhookTestRoute } from '../../write-api/webhooks/deliveries.ts';
import { webhookRoutes as changingRoutes } from '../../write-api/webhooks/endpoints.ts';
import type { ApiContext } from '../api-context.ts';
import type { Runtime } from '../runtime.ts';
import type { WorkerContext, WorkerModule } from '../worker-context.ts';
import { deliveryRoutes, startDelivering } from './deliveries.ts';

/** Builds the routes of webhook endpoints and their deliveries. */
export const webhookRoutes = (context: ApiContext): Route[] => {
  const { runtime, trackerCommands, caughtUp, ownWrite } = context;
  const { config, clock, db, store, endpoints, master, dayKeys, queue } = runtime;
  const commands = createEndpointCommands({
    batcher: endpoints,
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
      caughtUp: caughtUp([webhooks.name]),
      limits: limitsOf(config),
      totalsOf,
      queueState: (partnerId, now) => countDue(db, partnerId, now),
    }),
    ...changingRoutes({
      commands,
      projected: ownWrite([webhooks.name, deliveries.name]),
      changed: queue.endpointsChanged,
      totalsOf,
    }),
    webhookTestRoute({
      sendTest: createSendTest({ store, endpoints, dayKeys, reserveQueue: reserveForDelivery(queue) }),
      projected: ownWrite([deliveries.name, payloads.name]),
    }),
    ...deliveryRoutes(context),
  ];
};

export const webhookWork = ({ runtime, metrics, applied }: WorkerContext): WorkerModule => {
  const { store, pool, clock, dayKeys } = runtime;
  const queueing = queueWebhookEvents({
    store,
    pool,
    clock,
    dayKeys,
    applied,
    labelsOf: async (rows) => (await openSecrets(rows, dayKeys)).map((secrets) => secrets?.custom ?? null),
  });
  return {
    processors: { webhooks: [queueing] },
    jobs: () => [['* * * * *', () => sweepDeliveryClaims(pool, clock.now())]],
    start: () => startDelivering(runtime, metrics),
  };
};

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
