import type { PartnerRequest, Reply } from '../../http/contract/route.ts';
import type { FoundDelivery } from './delivery-rows.ts';
import type { DeliveryBody } from './delivery-schemas.ts';

export type { FoundDelivery };

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
export const deliveryAnswer = (
  request: PartnerRequest,
  delivery: FoundDelivery,
  body: Buffer | null,
): Reply => {
  const event = body === null || delivery.state === 'expired' ? null : JSON.parse(body.toString('utf8'));
  return {
    status: 200,
    body: JSON.stringify({ ...deliveryFields(delivery), event, request_id: request.id }),
  };
};
