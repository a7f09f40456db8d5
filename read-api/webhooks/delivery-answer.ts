import type { Answer, PartnerRequest } from '../../http/route.ts';
import type { DeliveryBody, DeliveryState } from './delivery-schemas.ts';

/** A delivery as the read model has it, in the state that it is in now. */
export interface ShownDelivery {
  readonly delivery_id: string;
  readonly event_id: string;
  readonly type: DeliveryBody['type'];
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly created_at: string;
  readonly last_attempt_at: string | null;
  readonly delivered_at: string | null;
  readonly next_attempt_at: string | null;
  readonly http_status: number | null;
  readonly error: DeliveryBody['error'];
}

/** A delivery as the API shows it. */
export const deliveryFields = (delivery: ShownDelivery): DeliveryBody => ({
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

/** `body`: of its event, as it was stored; null: it is gone. */
export const deliveryAnswer = (
  request: PartnerRequest,
  delivery: ShownDelivery,
  body: Buffer | null,
): Answer => {
  const event = body === null || delivery.state === 'expired' ? null : JSON.parse(body.toString('utf8'));
  return {
    status: 200,
    body: JSON.stringify({ ...deliveryFields(delivery), event, request_id: request.id }),
  };
};
