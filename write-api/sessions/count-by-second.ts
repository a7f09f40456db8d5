import type { Clock } from '../../platform/clock.ts';
import { Counts } from '../../platform/counts.ts';

/** What was counted by name in the current second, and in the one before. */
export interface Counted {
  readonly own: number;
  readonly ownBefore: number;
  readonly all: number;
  readonly allBefore: number;
}

export const SECOND = 1_000;

/** Counts some more of a name each time it is called; default: one. */
export const countBySecond = (clock: Clock): ((name: string, more?: number) => Counted) => {
  let since = Number.NEGATIVE_INFINITY;
  let all = 0;
  let allBefore = 0;
  let now = new Counts();
  let before = new Counts();
  return (name, more = 1) => {
    const age = clock.now() - since;
    if (age < 0 || age >= SECOND) {
      const isNext = age >= SECOND && age < 2 * SECOND;
      before = isNext ? now : new Counts();
      allBefore = isNext ? all : 0;
      now = new Counts();
      since = clock.now();
      all = 0;
    }
    now.add(name, more);
    all += more;
    return { own: now.of(name), ownBefore: before.of(name), all, allBefore };
  };
};
