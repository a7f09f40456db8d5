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
  /** Ring buffer of the last admissions' times, at least as many as the ceiling; 0: none yet. */
  times: Float64Array;
  next: number;
  /** Index of the oldest admission that is in the window, and how many are. */
  first: number;
  used: number;
}

const NAMES = 20_000;
const SECOND = 1_000;

/** Makes a window with room for more admissions, and those of the one before: a part of a rate changes with its askers. */
const largerWindow = (ceiling: number, before: Window | undefined): Window => {
  const times = new Float64Array(ceiling);
  if (before === undefined) return { times, next: 0, first: 0, used: 0 };
  const { length } = before.times;
  for (let nth = 0; nth < before.used; nth += 1) {
    times[nth] = before.times[(before.first + nth) % length] as number;
  }
  return { times, next: before.used, first: 0, used: before.used };
};

/** The time of the last admission but `ceiling`, which the window has room for; 0: there were fewer. */
const lastBut = (ceiling: number, { times, next }: Window): number =>
  times[(next - ceiling + times.length) % times.length] as number;

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
      if (window === undefined) return { left: ceiling, resetMs: windowMs };
      const now = clock.now();
      const age = (): number => now - (window.times[window.first] as number);
      while (window.used > 0 && !(age() >= 0 && age() < windowMs)) {
        window.first = (window.first + 1) % window.times.length;
        window.used -= 1;
      }
      if (window.used < ceiling) return { left: ceiling - window.used, resetMs: windowMs };
      return { left: 0, resetMs: windowMs - (now - lastBut(ceiling, window)) };
    },
    admit: (name, ceiling, windowMs = SECOND) => {
      let window = windows.get(name);
      if (window === undefined || window.times.length < ceiling) {
        window = largerWindow(ceiling, window);
        windows.set(name, window);
      }
      const now = clock.now();
      const oldest = lastBut(ceiling, window);
      if (oldest !== 0 && now - oldest < windowMs && now >= oldest) {
        return { retryMs: windowMs - (now - oldest) };
      }
      window.times[window.next] = now;
      window.next = (window.next + 1) % window.times.length;
      // A full ring has just lost its oldest.
      if (window.used === window.times.length) window.first = window.next;
      else window.used += 1;
      return null;
    },
  };
};
