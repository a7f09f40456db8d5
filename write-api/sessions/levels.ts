import type { Clock } from '../../platform/clock.ts';
import { Counts } from '../../platform/counts.ts';
import { fairLevel, roomBesideSmall } from '../../platform/fair-rate.ts';
import { SECOND } from './count-by-second.ts';

/** Over which captures are counted: shorter, and one with a visit now and then would find no room; longer, and it keeps it in vain. */
const COUNTED_MS = 2_500;

/**
 * Shares what there is of a group among those that have captures in it: each has what it wants, up to an equal level (max-min
 * fairness), by what it had in the two and a half seconds before.
 *
 * @returns what counts a capture and returns how many of that name there may be in a second, of `capacity`
 */
export const createLevels = (clock: Clock): ((group: string, name: string, capacity: number) => number) => {
  let since = Number.NEGATIVE_INFINITY;
  let now = new Map<string, Counts>();
  let before = new Map<string, Counts>();
  let levels = new Map<string, { readonly of: number; readonly level: number }>();

  const beginAnother = (): void => {
    const age = clock.now() - since;
    if (age >= 0 && age < COUNTED_MS) return;
    before = age >= 0 && age < 2 * COUNTED_MS ? now : new Map();
    now = new Map();
    levels = new Map();
    since = clock.now();
  };

  const levelOf = (group: string, capacity: number): number => {
    const counts = before.get(group)?.all() ?? [];
    const wanted = counts.map((count) => (count * SECOND) / COUNTED_MS);
    return fairLevel(capacity, [...wanted, roomBesideSmall(capacity, wanted.length, wanted)]);
  };

  return (group, name, capacity) => {
    beginAnother();
    const counts = now.get(group) ?? new Counts();
    now.set(group, counts);
    counts.add(name, 1);
    let known = levels.get(group);
    if (known?.of !== capacity) {
      known = { of: capacity, level: levelOf(group, capacity) };
      levels.set(group, known);
    }
    const { level } = known;
    return Math.ceil(Math.min(level, capacity));
  };
};
