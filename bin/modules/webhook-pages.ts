import type { CommandContext } from '../../commands/handle.ts';
import { deliveryId } from '../../commands/webhooks/queue-deliveries.ts';
import { createSendTest } from '../../commands/webhooks/send-test.ts';
import { probeEveryMs } from '../../domain/webhooks/schedule.ts';
import { asUuid } from '../../http/contract/parameters.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import { reserveForDelivery } from '../../processors/webhooks/queue-admission.ts';
import {
  type EndpointHealth,
  readAttempts,
  readHealth,
} from '../../projections/webhooks/deliveries/health-readers.ts';
import { deliveries } from '../../projections/webhooks/deliveries/projection.ts';
import {
  type Delivery,
  findDelivery,
  listAttempts,
  searchDeliveries,
} from '../../projections/webhooks/deliveries/readers.ts';
import { countRecoverable } from '../../projections/webhooks/deliveries/recovery-readers.ts';
import { endpoints } from '../../projections/webhooks/endpoints/projection.ts';
import { payloads } from '../../projections/webhooks/payloads/projection.ts';
import { deliveryFields } from '../../read-api/webhooks/answer.ts';
import type { Visit } from '../../web/dashboard/api.ts';
import {
  type DeliveryDeps,
  deliveryPages,
  type ListedDelivery,
} from '../../web/dashboard/pages/deliveries.ts';
import { type RecoveryDeps, recoveryPages } from '../../web/dashboard/pages/recoveries.ts';
import { type WebhookDeps, webhookPages } from '../../web/dashboard/pages/webhooks.ts';
import type { PageRoute } from '../../web/dashboard/routes.ts';
import type { ApiContext } from '../api-context.ts';
import type { Runtime } from '../runtime.ts';

/** Returns a partner's endpoints with their health: one of them, or (null) all that are not deleted. `now` in milliseconds. */
const endpointHealth = (
  { db, config }: Runtime,
  partnerId: string,
  webhookId: string | null,
  now: number,
): Promise<readonly EndpointHealth[]> => {
  const probeMs = probeEveryMs(config.RETRY_BASE_SECONDS * 1_000);
  return readHealth(db, { partnerId, webhookId, probeMs, now });
};

/** Builds the dashboard's pages about webhooks. `contextOf`: the context of a command that a page gives. */
export function webhookPagesOf(
  { runtime, waitForHead, ownWrite }: ApiContext,
  contextOf: (visit: Visit) => CommandContext,
): PageRoute[] {
  const { db, pool, queue } = runtime;
  const wait = waitForHead([endpoints.name, deliveries.name, payloads.name]);
  const sendTest = createSendTest({ ...runtime, reserveQueue: reserveForDelivery(queue) });
  const projected = ownWrite([deliveries.name, payloads.name]);
  const health: WebhookDeps['health'] = async ({ user, request }, webhookId) => {
    await wait();
    return endpointHealth(runtime, user.partner_id, webhookId, request.receivedAt);
  };
  const listed = (found: Delivery): ListedDelivery => ({
    ...deliveryFields(found),
    position: found.position,
  });
  const endpoint: WebhookDeps = {
    health,
    attempts: ({ user }, webhookId, since) => readAttempts(db, user.partner_id, webhookId, since),
    sendSample: async (visit, webhookId, type) => {
      const { request, user } = visit;
      const id = asUuid(webhookId);
      const sent = id === null ? null : await sendTest(user.partner_id, id, contextOf(visit), type);
      if (!sent?.ok) {
        const { status, body } = refusal(request, sent?.refusal ?? 'webhook_not_found');
        return { ok: false, status, ...JSON.parse(String(body)).error };
      }
      const { delivery_id, position } = sent.value;
      await projected(position).catch(() => undefined);
      return { ok: true, status: 202, body: { delivery_id } };
    },
  };
  const history: DeliveryDeps = {
    health,
    search: async ({ request }, { id: webhookId, deleted_at }, filters, limit) => {
      const search = { ...filters, webhookId, deleted: deleted_at !== null, limit, now: request.receivedAt };
      return (await searchDeliveries(db, search)).map(listed);
    },
    find: async ({ request }, { id: webhookId, deleted_at }, id) => {
      const wanted = asUuid(id) ?? deliveryId(webhookId, id);
      const of = { webhookId, deleted: deleted_at !== null };
      const found = await findDelivery({ db, waitForHead: wait }, of, wanted, request.receivedAt);
      return found && listed(found);
    },
    attemptsAt: (webhookId, delivery) => listAttempts(db, webhookId, delivery),
  };
  const recovery: RecoveryDeps = {
    health,
    countRecoverable: ({ request }, webhookId, since, heldBack, limit) =>
      countRecoverable(pool, { webhookId, since, heldBack, now: request.receivedAt }, limit),
  };
  return [...webhookPages(endpoint), ...recoveryPages(recovery), ...deliveryPages(history)];
}
