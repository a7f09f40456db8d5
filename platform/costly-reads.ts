import { LRUCache } from 'lru-cache';

const CACHED = 1_000;
/** Results of shorter reads are not reused. */
const COSTLY_MS = 250;
/** So that repeats of one read take at most a tenth of a connection's time. */
const REUSED_FOR_TIMES = 10;

/**
 * Wraps a read whose cost grows with what it is about: callers at the same time share one run, and the result of a run of 250 ms
 * or more is reused for ten times as long as it took. A failed run is not reused.
 * @param now monotonic, milliseconds
 */
export const createCostlyReads = <Args extends readonly string[], T>(
  read: (...args: Args) => Promise<T>,
  now: () => number = () => performance.now(),
): ((...args: Args) => Promise<T>) => {
  const known = new LRUCache<string, { readonly result: Promise<T>; until: number }>({ max: CACHED });
  return (...args) => {
    const key = args.join(' ');
    const before = known.get(key);
    const begun = now();
    if (before && begun < before.until) return before.result;
    const entry = { result: read(...args), until: Number.POSITIVE_INFINITY };
    known.set(key, entry);
    entry.result.then(
      () => {
        const tookMs = now() - begun;
        entry.until = begun + tookMs + (tookMs < COSTLY_MS ? 0 : REUSED_FOR_TIMES * tookMs);
      },
      () => {
        if (known.peek(key) === entry) known.delete(key);
      },
    );
    return entry.result;
  };
};
