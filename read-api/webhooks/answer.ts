/** How endpoints and deliveries are shown, whoever serves them. */
import { MANAGEMENT_BODY_LIMIT } from '../../http/contract/parameters.ts';
import type { PartnerRequest, PartnerRoute, Reply } from '../../http/contract/route.ts';
import type { FoundDelivery } from './delivery-queries.ts';
import type { DeliveryBody } from './delivery-schemas.ts';
import type { DeliveryTotals, WebhookBody } from './endpoint-schemas.ts';

export type { FoundDelivery };

/** What all routes under /v1/webhooks share (contract, Requests and Webhooks). */
export const WEBHOOK_ROUTE = {
  bodyLimit: MANAGEMENT_BODY_LIMIT,
  budget: 'webhooks',
  unavailable: 'webhooks_unavailable',
} as const satisfies Partial<PartnerRoute>;

/** An endpoint, from the stream that it stands on or from the read model. */
export type ShownEndpoint = Readonly<
  Omit<WebhookBody, 'id' | 'events' | 'deliveries' | 'request_id'> & {
    webhook_id: string;
    events: readonly WebhookBody['events'][number][];
  }
>;

/** How many deliveries each of these endpoints has; one that is not named has none. */
export type TotalsOf = (webhookIds: readonly string[]) => Promise<ReadonlyMap<string, DeliveryTotals>>;

/** An endpoint as the API shows it. */
export function webhookFields(
  endpoint: ShownEndpoint,
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

/** A delivery as the API shows it. */
export const deliveryFields = (delivery: FoundDelivery): DeliveryBody => ({
  id: delivery.delivery_id,
  event_id: delivery.event_id,
  type: delivery.type,
  state: delivery.state,
  attempts: delivery.attempts,
  created_at: delivery.created_at,
  last_attempt_at: delivery.last_attempt_at,
  delivered_at: delivery.delivered_at,
  next_attempt_at: delivery.state === 'pending' ? delivery.next_attempt_at : null,
  http_status: delivery.http_status,
  error: delivery.error,
});

/** `body`: the event as it was stored; null: expired. */
export function deliveryAnswer(request: PartnerRequest, delivery: FoundDelivery, body: Buffer | null): Reply {
  const event = body === null || delivery.state === 'expired' ? null : JSON.parse(body.toString('utf8'));
  return {
    status: 200,
    body: JSON.stringify({ ...deliveryFields(delivery), event, request_id: request.id }),
  };
}
