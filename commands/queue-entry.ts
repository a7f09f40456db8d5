/** Room in the queues of the endpoints that are to be told of something. */
export interface QueueEntry {
  /** It did not happen. */
  leave(): void;
  /** It is in the log: whoever is told of it should hear soon. */
  happened(): void;
}
