/** The bodies of endpoints and deliveries, for the routes that read and for those that change them. */
import type { DeliveryTotals } from '../../domain/webhooks/events.ts';
import { MANAGEMENT_BODY_LIMIT } from '../../http/contract/parameters.ts';
import type { PartnerRequest, PartnerRoute, Reply } from '../../http/contract/route.ts';
import type { Delivery } from '../../projections/webhooks/deliveries/readers.ts';
import type { Endpoint } from '../../projections/webhooks/endpoints/readers.ts';
import { type DeliveryBody, webhookDelivery } from './delivery-schemas.ts';
import { type WebhookBody, webhookBody } from './endpoint-schemas.ts';

/** For write-api, which may not import readers of tables. */
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
  const { webhook_id: id, events, secret_rotation_until: until } = endpoint;
  const secret_rotation_until = until !== null && now < Date.parse(until) ? until : null;
  return shownAs(webhookBody, { ...endpoint, id, events: [...events], secret_rotation_until, deliveries });
}

/** A delivery as the API shows it. */
export function deliveryFields(delivery: Delivery): DeliveryBody {
  const next_attempt_at = delivery.state === 'pending' ? delivery.next_attempt_at : null;
  return shownAs(webhookDelivery, { ...delivery, id: delivery.delivery_id, next_attempt_at });
}

/** Returns the fields of a schema, in its order, and nothing else that is known. */
const shownAs = <Body extends object>({ shape }: { readonly shape: object }, known: Body): Body =>
  Object.fromEntries(Object.keys(shape).map((field) => [field, known[field as keyof Body]])) as Body;

/** `body`: the event as it was stored; null: expired. */
export function deliveryAnswer(request: PartnerRequest, delivery: Delivery, body: Buffer | null): Reply {
  const event = body === null || delivery.state === 'expired' ? null : JSON.parse(body.toString('utf8'));
  return {
    status: 200,
    body: JSON.stringify({ ...deliveryFields(delivery), event, request_id: request.id }),
  };
}
