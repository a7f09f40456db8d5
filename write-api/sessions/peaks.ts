import type { Clock } from '../../platform/clock.ts';
import { createWindows } from './windows.ts';

/** The largest count is remembered in a window and in the one after it. */
const PEAK_MS = 30_000;

/** Returns the largest count of a name in the last 30 to 60 seconds, with this one. */
export const createPeaks = (clock: Clock): ((name: string, count: number) => number) => {
  const windows = createWindows(clock, PEAK_MS, () => new Map<string, number>());
  return (name, count) => {
    const { now, before } = windows();
    const peak = Math.max(count, now.get(name) ?? 0);
    now.set(name, peak);
    return Math.max(peak, before.get(name) ?? 0);
  };
};
