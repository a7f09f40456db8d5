export interface BatchDelayOptions {
  /** Maximum wait for a batch, milliseconds. */
  readonly ms: number;
  /** Number of calls that ends the wait early. */
  readonly most: number;
}

/** For calls that each take one durable write. At 100 calls a second, four share a commit and wait 15 ms on average. */
export const GROUP_COMMIT_DELAY: BatchDelayOptions = { ms: 40, most: 4 };

/** Calls that skip the wait after a batch that stayed too small; doubled after each such batch. */
const SKIPPED_WAITS = { first: 16, largest: 256 } as const;

/**
 * Delays calls briefly so that independent callers share a group commit. Sequential callers would only lose time, so calls
 * skip the wait while batches stay too small.
 * @returns a function that resolves when the call may proceed
 */
export function createBatchDelay({ ms, most }: BatchDelayOptions): () => Promise<void> {
  let held = Promise.withResolvers<void>();
  let count = 0;
  let timer: NodeJS.Timeout | null = null;
  let skips: number = SKIPPED_WAITS.first;
  let skipsLeft: number = SKIPPED_WAITS.first;

  const release = (): void => {
    if (timer) clearTimeout(timer);
    timer = null;
    if (count >= most) skips = SKIPPED_WAITS.first;
    else {
      skipsLeft = skips;
      skips = Math.min(skips * 2, SKIPPED_WAITS.largest);
    }
    count = 0;
    held.resolve();
    held = Promise.withResolvers<void>();
  };

  return () => {
    if (skipsLeft > 0) {
      skipsLeft -= 1;
      return Promise.resolve();
    }
    const { promise } = held;
    count += 1;
    if (count >= most) release();
    else timer ??= setTimeout(release, ms);
    return promise;
  };
}
