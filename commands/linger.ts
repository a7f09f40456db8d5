export interface LingerOptions {
  /** How long a call waits for company, milliseconds. */
  readonly ms: number;
  /** So many go on together, without waiting any longer. */
  readonly most: number;
}

/** For what is answered after one durable write. At 100 a second four share a commit, and wait 15 ms on average. */
export const LINGER: LingerOptions = { ms: 40, most: 4 };

/** So many calls go on at once after a wait for too few; twice as many after the next such wait, up to the largest. */
const PASSED = { first: 16, largest: 256 } as const;

/**
 * Holds calls back for a moment, so that those of independent callers share a commit. Callers who wait for their answers
 * before they call again would only lose time: where too few come, calls go on at once.
 * @returns resolves when the call may go on
 */
export const createLinger = ({ ms, most }: LingerOptions): (() => Promise<void>) => {
  let held = Promise.withResolvers<void>();
  let count = 0;
  let timer: NodeJS.Timeout | null = null;
  let passed: number = PASSED.first;
  /** Calls that still go on at once. */
  let left: number = PASSED.first;

  const release = (): void => {
    if (timer) clearTimeout(timer);
    timer = null;
    if (count >= most) passed = PASSED.first;
    else {
      left = passed;
      passed = Math.min(passed * 2, PASSED.largest);
    }
    count = 0;
    held.resolve();
    held = Promise.withResolvers<void>();
  };

  return () => {
    if (left > 0) {
      left -= 1;
      return Promise.resolve();
    }
    const { promise } = held;
    count += 1;
    if (count >= most) release();
    else timer ??= setTimeout(release, ms);
    return promise;
  };
};
