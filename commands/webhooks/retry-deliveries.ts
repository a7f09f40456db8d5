import { accept, type Result, refuse } from '../../domain/kernel/decider.ts';
import { isoTime } from '../../domain/kernel/time.ts';
import {
  type DeliveryEvent,
  type DeliveryRef,
  type DeliveryState,
  deliveryEvents,
} from '../../domain/webhooks/events.ts';
import { type EventStore, OutcomeUnknown, type Position, StreamExpired } from '../../event-store/port.ts';
import { appendSafely, type CommandContext, toNewEvents } from '../handle.ts';
import type { ReserveDelivery } from '../queue-reservation.ts';
import { currentEndpoint, type EndpointBatcher } from './manage-endpoints.ts';
import { deliveriesStream } from './queue-deliveries.ts';

/**
 * A delivery in any state, as read from the read model. `delivered` and `failed` may be retried while the endpoint is enabled;
 * `pending` stays unchanged; `expired` is refused. `cancelled` (a pending delivery of a deleted endpoint, derived by
 * `projections/webhooks/deliveries/readers.ts` and never stored) is refused as `webhook_disabled`.
 */
export interface ProjectedDelivery extends DeliveryRef {
  readonly event_id: string;
  readonly created_at: string;
  readonly state: DeliveryState;
  readonly cycle: number;
}

export interface RetryDeps {
  readonly store: EventStore;
  readonly endpoints: EndpointBatcher;
  /** Returns whether the body of the event is neither expired nor unreadable. */
  readonly hasBody: (eventId: string) => Promise<boolean>;
  readonly reserveQueue: ReserveDelivery;
}

export type RetryRefusal = 'webhook_disabled' | 'webhook_event_expired' | 'webhook_queue_full';

/**
 * Starts a delivery's next retry cycle; 'unchanged' if it is pending. The read model may be stale: the event names its
 * cycle, and projections use the first event of a cycle.
 * @throws the port's errors: the cycle may have started, and repeating is safe
 */
export async function retryDelivery(
  { store, endpoints, hasBody, reserveQueue }: RetryDeps,
  delivery: ProjectedDelivery,
  context: CommandContext,
): Promise<Result<{ readonly position: Position | null } | 'unchanged', RetryRefusal>> {
  const { delivery_id, webhook_id, partner_id, event_id, created_at, state, cycle } = delivery;
  if (state === 'pending') return accept('unchanged');
  const endpoint = await currentEndpoint(endpoints, partner_id, webhook_id);
  if (!endpoint?.enabled) return refuse('webhook_disabled');
  if (state === 'expired' || !(await hasBody(event_id))) return refuse('webhook_event_expired');
  const queueReservation = await reserveQueue({ partner_id, webhook_id, event_id });
  if (queueReservation === null) return refuse('webhook_queue_full');
  const event: DeliveryEvent = {
    type: 'webhooks.DeliveryRetried.v1',
    data: { delivery_id, webhook_id, partner_id, cycle: cycle + 1, retried_at: isoTime(context.at) },
  };
  const stream = deliveriesStream(webhook_id, created_at);
  try {
    const events = toNewEvents(deliveryEvents, [event], context);
    const { position } = await appendSafely(store, stream, 'any', events);
    queueReservation.confirm();
    return accept({ position });
  } catch (error) {
    if (!(error instanceof OutcomeUnknown)) queueReservation.release();
    if (error instanceof StreamExpired) return refuse('webhook_event_expired');
    throw error;
  }
}
