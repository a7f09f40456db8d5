import type { Clock } from '../../platform/clock.ts';
import { Counts } from '../../platform/counts.ts';
import { fairLevel, roomBesideSmall } from '../../platform/fair-rate.ts';
import { SECOND } from './count-by-second.ts';
import { createWindows } from './windows.ts';

/** Over which captures are counted: shorter, and one with a visit now and then would find no room; longer, and it keeps it in vain. */
const COUNTED_MS = 2_500;

/**
 * Shares what there is of a group among those that have captures in it: each has what it wants, up to an equal level (max-min
 * fairness), by what it had in the two and a half seconds before.
 *
 * @returns what counts a capture and returns how many of that name there may be in a second, of `capacity`
 */
export const createLevels = (clock: Clock): ((group: string, name: string, capacity: number) => number) => {
  const windows = createWindows(clock, COUNTED_MS, () => ({
    counts: new Map<string, Counts>(),
    /** What each in a group wanted in the window before. */
    wanted: new Map<string, readonly number[]>(),
  }));
  return (group, name, capacity) => {
    const { now, before } = windows();
    const counts = now.counts.get(group) ?? new Counts();
    now.counts.set(group, counts);
    counts.add(name, 1);
    const wanted =
      now.wanted.get(group) ??
      (before.counts.get(group)?.all() ?? [])
        .map((count) => (count * SECOND) / COUNTED_MS)
        .sort((one, other) => one - other);
    now.wanted.set(group, wanted);
    const level = fairLevel(capacity, [...wanted, roomBesideSmall(capacity, wanted.length, wanted)]);
    return Math.ceil(Math.min(level, capacity));
  };
};
