/** A reserved slot in the queues of the endpoints that will be notified. */
export interface QueueEntry {
  /** Gives the slot back, because the event was not appended. */
  release(): void;
  /** Marks the event as appended, so that its notification is queued soon. */
  confirm(): void;
}
