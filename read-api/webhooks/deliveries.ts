import { deliveryStateSchema } from '../../domain/webhooks/events.ts';
import { uuidParam } from '../../http/contract/parameters.ts';
import { partnerRoutes } from '../../http/contract/partner-routes.ts';
import type { PartnerRequest, PartnerRoute, Reply } from '../../http/contract/route.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import {
  type Delivery,
  findDelivery,
  listDeliveries,
} from '../../projections/webhooks/deliveries/readers.ts';
import { findEndpoint } from '../../projections/webhooks/endpoints/readers.ts';
import type { BodyOf } from '../../projections/webhooks/payloads/readers.ts';
import type { Reads } from '../../queries/reads.ts';
import type { Cursors } from '../cursor.ts';
import { namedParameters } from '../query.ts';
import { deliveryAnswer, deliveryFields, WEBHOOK_ROUTE } from './answer.ts';
import { getDeliveryOperation, listDeliveriesOperation } from './delivery-schemas.ts';

export interface DeliveryReadDeps extends Reads {
  readonly cursors: Cursors;
  readonly bodyOf: BodyOf;
}

const PAGE = 50;

/** GET /v1/webhooks/{webhook_id}/deliveries and GET …/deliveries/{delivery_id}. */
export function deliveryReadRoutes(deps: DeliveryReadDeps): PartnerRoute[] {
  const route = partnerRoutes(deps, WEBHOOK_ROUTE);
  return [
    route('GET', '/v1/webhooks/:webhook_id/deliveries', 'none', listDeliveriesOperation, history),
    route('GET', '/v1/webhooks/:webhook_id/deliveries/:delivery_id', 'none', getDeliveryOperation, one),
  ];
}

/** Lists deliveries by log position, newest first, so that a new one does not shift later pages. */
async function history(deps: DeliveryReadDeps, request: PartnerRequest): Promise<Reply> {
  const asked = parseQuery(request.query);
  if (asked === null) return refusal(request, 'invalid_webhook_query');
  const webhookId = uuidParam(request, 'webhook_id');
  if (webhookId === null) return refusal(request, 'webhook_not_found');
  const { partner_id } = request.caller;
  const list = `deliveries ${partner_id} ${webhookId} ${asked.status ?? '*'}`;
  const before = asked.cursor === null ? null : await deps.cursors.open(asked.cursor, list);
  if (asked.cursor !== null && before === null) return refusal(request, 'invalid_webhook_query');
  const endpoint = await findEndpoint(deps, partner_id, webhookId, request.receivedAt);
  if (endpoint === null) return refusal(request, 'webhook_not_found');

  await deps.waitForHead();
  const found = await listDeliveries(deps.db, {
    webhookId,
    deleted: endpoint.deleted_at !== null,
    status: asked.status,
    before,
    limit: PAGE + 1,
    now: request.receivedAt,
  });
  const page = found.slice(0, PAGE);
  const last = page.at(-1);
  const hasMore = found.length > PAGE;
  const body = {
    deliveries: page.map(deliveryFields),
    has_more: hasMore,
    next_cursor: hasMore && last ? await deps.cursors.seal(BigInt(last.position), list) : '',
    request_id: request.id,
  };
  return { status: 200, body: JSON.stringify(body) };
}

/** @returns null for an unknown or repeated parameter, or an unknown state */
function parseQuery(query: string) {
  const given = namedParameters(query, ['cursor', 'status']);
  const status = deliveryStateSchema.nullable().safeParse(given?.status ?? null);
  return given && status.success ? { cursor: given.cursor ?? null, status: status.data } : null;
}

async function one(deps: DeliveryReadDeps, request: PartnerRequest): Promise<Reply> {
  if (request.query !== '') return refusal(request, 'invalid_webhook_query');
  const webhookId = uuidParam(request, 'webhook_id');
  if (webhookId === null) return refusal(request, 'webhook_not_found');
  const deliveryId = uuidParam(request, 'delivery_id');
  if (deliveryId === null) return refusal(request, 'webhook_delivery_not_found');
  const { partner_id } = request.caller;
  const found = await findShownDelivery(deps, partner_id, webhookId, deliveryId, request.receivedAt);
  if (typeof found === 'string') return refusal(request, found);
  return deliveryAnswer(request, found, await deps.bodyOf(found.event_id));
}

/** A delivery of one of the partner's endpoints, deleted ones too. `now` in milliseconds. */
export async function findShownDelivery(
  reads: Reads,
  partnerId: string,
  webhookId: string,
  deliveryId: string,
  now: number,
): Promise<Delivery | 'webhook_not_found' | 'webhook_delivery_not_found'> {
  const endpoint = await findEndpoint(reads, partnerId, webhookId, now);
  if (endpoint === null) return 'webhook_not_found';
  const deleted = endpoint.deleted_at !== null;
  const row = await findDelivery(reads, { webhookId, deleted }, deliveryId, now);
  return row ?? 'webhook_delivery_not_found';
}
