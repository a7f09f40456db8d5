import { type DeliveryEvent, deliveryEvents } from '../../domain/webhooks/events.ts';
import { type EventStore, type NewEvent, type Position, StreamExpired } from '../../event-store/port.ts';
import { appendSafely, newId, toNewEvents } from '../handle.ts';

type Attempted = Extract<DeliveryEvent, { type: 'webhooks.DeliveryAttempted.v1' }>;
export type AttemptOutcome = Attempted['data'];

/** Makes the event of an outcome, once: a retried append repeats its id. `at` in milliseconds. */
export function attemptEvent(data: AttemptOutcome, at: number): NewEvent {
  const event: Attempted = { type: 'webhooks.DeliveryAttempted.v1', data };
  const { delivery_id, partner_id } = data;
  const context = { correlationId: newId(), causationId: delivery_id, at, partnerId: partner_id };
  return toNewEvents(deliveryEvents, [event], context)[0] as NewEvent;
}

/**
 * Appends outcomes of attempts to their deliveries' stream. Projections use the first outcome of an attempt, so repeating
 * is safe.
 * @param isWanted asked before each try after the first
 * @returns position of the last, null if the store does not report it; 'forgotten': the deliveries' metadata is deleted
 * @throws the port's errors
 */
export async function appendOutcomes(
  store: EventStore,
  stream: string,
  events: readonly NewEvent[],
  isWanted: () => boolean,
): Promise<Position | null | 'forgotten'> {
  try {
    return (await appendSafely(store, stream, 'any', events, isWanted)).position;
  } catch (error) {
    if (error instanceof StreamExpired) return 'forgotten';
    throw error;
  }
}
