/** Room in a partner's queue of webhook deliveries, reserved for those of one event. */
export interface QueueReservation {
  /** Gives the room back, because the event was not appended. */
  release(): void;
  /** Marks the event as appended, so that its notification is queued soon. */
  confirm(): void;
}
