import { LRUCache } from 'lru-cache';
import { type Breaker, type BreakerOptions, createBreaker } from './breaker.ts';

/**
 * A circuit breaker that tells askers apart: one asker may choose addresses for which a source always fails, and its failures
 * must not hold back others.
 */
export interface FairBreaker {
  /** Returns whether a call for the asker may be made now. While open, one call in each period may, as a probe. */
  admits(asker: string): boolean;
  succeeded(asker: string): void;
  failed(asker: string): void;
  /** Whether the last calls of all askers, as many as open a breaker, have failed. */
  isOpen(): boolean;
}

/** So many askers with open breakers and no success between them open the breaker of all. */
const ASKERS_TO_OPEN = 3;
const REMEMBERED_ASKERS = 1_000;

/** Creates a breaker for each asker, and one of all. A success closes that of its asker and of all. */
export const createFairBreaker = (options: BreakerOptions): FairBreaker => {
  const ofAll = createBreaker(options);
  const own = new LRUCache<string, Breaker>({ max: REMEMBERED_ASKERS });
  /** Askers whose own breakers opened since the last success. */
  const failing = new Set<string>();
  const isOpenForAll = (): boolean => failing.size >= ASKERS_TO_OPEN;
  return {
    admits: (asker) => (isOpenForAll() ? ofAll.admits() : (own.get(asker)?.admits() ?? true)),
    succeeded: (asker) => {
      if (isOpenForAll()) own.clear();
      failing.clear();
      own.delete(asker);
      ofAll.succeeded();
    },
    failed: (asker) => {
      const breaker = own.get(asker) ?? createBreaker(options);
      own.set(asker, breaker);
      breaker.failed();
      ofAll.failed();
      if (breaker.isOpen()) failing.add(asker);
    },
    isOpen: ofAll.isOpen,
  };
};
