/** How endpoints and deliveries are shown, whoever serves them. */
import type { DeliveryTotals } from '../../domain/webhooks/events.ts';
import { MANAGEMENT_BODY_LIMIT } from '../../http/contract/parameters.ts';
import type { PartnerRequest, PartnerRoute, Reply } from '../../http/contract/route.ts';
import type { Delivery } from '../../projections/webhooks/deliveries/readers.ts';
import type { Endpoint } from '../../projections/webhooks/endpoints/readers.ts';
import { type DeliveryBody, webhookDelivery } from './delivery-schemas.ts';
import type { WebhookBody } from './endpoint-schemas.ts';

export type { Delivery };

/** What all routes under /v1/webhooks share (contract, Requests and Webhooks). */
export const WEBHOOK_ROUTE = {
  bodyLimit: MANAGEMENT_BODY_LIMIT,
  budget: 'webhooks',
  unavailable: 'webhooks_unavailable',
} as const satisfies Partial<PartnerRoute>;

/** How many deliveries each of these endpoints has; one that is not named has none. */
export type TotalsOf = (webhookIds: readonly string[]) => Promise<ReadonlyMap<string, DeliveryTotals>>;

/** An endpoint as the API shows it. */
export function webhookFields(
  endpoint: Endpoint,
  deliveries: DeliveryTotals,
  { receivedAt: now }: PartnerRequest,
): Omit<WebhookBody, 'request_id'> {
  const until = endpoint.secret_rotation_until;
  return {
    id: endpoint.webhook_id,
    name: endpoint.name,
    url: endpoint.url,
    events: [...endpoint.events],
    tracker_id: endpoint.tracker_id,
    enabled: endpoint.enabled,
    created_at: endpoint.created_at,
    updated_at: endpoint.updated_at,
    deleted_at: endpoint.deleted_at,
    secret_rotation_until: until !== null && now < Date.parse(until) ? until : null,
    deliveries,
  };
}

const DELIVERY_FIELDS = Object.keys(webhookDelivery.shape) as (keyof DeliveryBody)[];

/** A delivery as the API shows it. */
export function deliveryFields(delivery: Delivery): DeliveryBody {
  const next_attempt_at = delivery.state === 'pending' ? delivery.next_attempt_at : null;
  const shown: DeliveryBody = { ...delivery, id: delivery.delivery_id, next_attempt_at };
  return Object.fromEntries(DELIVERY_FIELDS.map((field) => [field, shown[field]])) as DeliveryBody;
}

/** `body`: the event as it was stored; null: expired. */
export function deliveryAnswer(request: PartnerRequest, delivery: Delivery, body: Buffer | null): Reply {
  const event = body === null || delivery.state === 'expired' ? null : JSON.parse(body.toString('utf8'));
  return {
    status: 200,
    body: JSON.stringify({ ...deliveryFields(delivery), event, request_id: request.id }),
  };
}
