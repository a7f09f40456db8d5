/** Holds calls back from a source that keeps failing. */
export interface Breaker {
  /** Returns whether a call may be made now. While open, one call in each period may, as a probe. */
  admits(): boolean;
  succeeded(): void;
  failed(): void;
  isOpen(): boolean;
}

export interface BreakerOptions {
  /** Failures in a row that open it. */
  readonly failures: number;
  /** Time between two probes while it is open, milliseconds. */
  readonly openMs: number;
  /** Monotonic clock, milliseconds. */
  readonly now: () => number;
}

/** Creates a circuit breaker. A success closes it. */
export const createBreaker = ({ failures, openMs, now }: BreakerOptions): Breaker => {
  let inARow = 0;
  let nextProbe = 0;
  const isOpen = (): boolean => inARow >= failures;
  return {
    admits: () => {
      if (!isOpen()) return true;
      if (now() < nextProbe) return false;
      nextProbe = now() + openMs;
      return true;
    },
    succeeded: () => {
      inARow = 0;
    },
    failed: () => {
      inARow += 1;
      if (isOpen()) nextProbe = now() + openMs;
    },
    isOpen,
  };
};
