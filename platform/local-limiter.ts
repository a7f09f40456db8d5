import { LRUCache } from 'lru-cache';
import type { Clock } from './clock.ts';

/** null: admitted. Otherwise the milliseconds until a retry may succeed. */
export type Verdict = null | { readonly retryMs: number };

/** Whole seconds until a retry may succeed, as `Retry-After` has them. */
export const retrySeconds = ({ retryMs }: NonNullable<Verdict>): number => Math.ceil(retryMs / 1_000);

/** What is left of a rate. */
export interface Quota {
  /** Calls that would still be admitted now. Other processes may use them first. */
  readonly left: number;
  /** Milliseconds until there is more: the window, or the rest of a refusal's time. */
  readonly resetMs: number;
}

interface Window {
  /** Ring buffer of the last `ceiling` admissions' times; 0: none yet. */
  times: Float64Array;
  next: number;
  /** Index of the oldest admission that is in the window, and how many are. */
  first: number;
  used: number;
}

const NAMES = 20_000;
const SECOND = 1_000;

/** Creates an exact in-memory limiter, for a single process and for limits per process. */
export const createLocalLimiter = (
  clock: Clock,
): {
  admit(name: string, ceiling: number, windowMs?: number): Verdict;
  quota(name: string, ceiling: number, windowMs?: number): Quota;
} => {
  const windows = new LRUCache<string, Window>({ max: NAMES });
  return {
    quota: (name, ceiling, windowMs = SECOND) => {
      const window = windows.peek(name);
      if (window?.times.length !== ceiling) return { left: ceiling, resetMs: windowMs };
      const now = clock.now();
      const age = (): number => now - (window.times[window.first] as number);
      while (window.used > 0 && !(age() >= 0 && age() < windowMs)) {
        window.first = window.first + 1 === ceiling ? 0 : window.first + 1;
        window.used -= 1;
      }
      return { left: ceiling - window.used, resetMs: window.used < ceiling ? windowMs : windowMs - age() };
    },
    admit: (name, ceiling, windowMs = SECOND) => {
      let window = windows.get(name);
      if (window?.times.length !== ceiling) {
        window = { times: new Float64Array(ceiling), next: 0, first: 0, used: 0 };
        windows.set(name, window);
      }
      const now = clock.now();
      const oldest = window.times[window.next] as number;
      if (oldest !== 0 && now - oldest < windowMs && now >= oldest) {
        return { retryMs: windowMs - (now - oldest) };
      }
      window.times[window.next] = now;
      window.next = window.next + 1 === ceiling ? 0 : window.next + 1;
      // A full ring has just lost its oldest.
      if (window.used === ceiling) window.first = window.next;
      else window.used += 1;
      return null;
    },
  };
};
