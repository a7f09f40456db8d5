/** Reserves room in the partner's queue for a delivery to one endpoint; null if it is full. */
export type ReserveDelivery = (
  delivery: Readonly<Record<'partner_id' | 'webhook_id' | 'event_id', string>>,
) => Promise<QueueReservation | null>;

/** Room in a partner's queue of webhook deliveries, reserved for those of one event. */
export interface QueueReservation {
  /** Gives the room back, because the event was not appended. */
  release(): void;
  /** Wakes the processor that queues deliveries, because the event was appended. The room stays taken until they are queued. */
  confirm(): void;
}
