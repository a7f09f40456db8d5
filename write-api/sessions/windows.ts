import type { Clock } from '../../platform/clock.ts';

/**
 * Returns what is collected in the current window of time, and what was in the one before; a clock that is set back begins another.
 * @param make what a window begins with
 */
export const createWindows = <T>(
  clock: Clock,
  windowMs: number,
  make: () => T,
): (() => { readonly now: T; readonly before: T }) => {
  let since = Number.NEGATIVE_INFINITY;
  let windows = { now: make(), before: make() };
  return () => {
    const age = clock.now() - since;
    if (age < 0 || age >= windowMs) {
      const isNext = age >= 0 && age < 2 * windowMs;
      windows = { now: make(), before: isNext ? windows.now : make() };
      since = clock.now();
    }
    return windows;
  };
};
