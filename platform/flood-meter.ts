/**
 * Limits of notifications a second, several times those of the largest installation. Any login can send 300,000 a second, and
 * each takes microseconds of the event loop of every process that listens.
 */
export const MAX_NOTIFICATIONS_PER_SECOND = 5_000;
const MAX_BYTES_PER_SECOND = 4 * 1_048_576;

/** Tells whether notifications are a flood. */
export interface FloodMeter {
  /** Counts a notification. @returns whether this second has brought more than the limits */
  isFlood(payload: string): boolean;
}

/** @param now monotonic, milliseconds */
export const createFloodMeter = (now: () => number = () => performance.now()): FloodMeter => {
  let [since, count, bytes] = [Number.NEGATIVE_INFINITY, 0, 0];
  return {
    isFlood: (payload) => {
      if (now() - since >= 1_000) [since, count, bytes] = [now(), 0, 0];
      count += 1;
      bytes += payload.length;
      return count > MAX_NOTIFICATIONS_PER_SECOND || bytes > MAX_BYTES_PER_SECOND;
    },
  };
};
