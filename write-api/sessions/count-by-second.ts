import type { Clock } from '../../platform/clock.ts';

/** What was counted by name in the current second, and in the one before. */
export interface Counted {
  readonly own: number;
  readonly ownBefore: number;
  readonly all: number;
  readonly allBefore: number;
}

const SECOND = 1_000;

/** Counts one more of a name each time it is called. */
export const countBySecond = (clock: Clock): ((name: string) => Counted) => {
  let since = Number.NEGATIVE_INFINITY;
  let all = 0;
  let allBefore = 0;
  let now = new Map<string, number>();
  let before = new Map<string, number>();
  return (name) => {
    const age = clock.now() - since;
    if (age < 0 || age >= SECOND) {
      const isNext = age >= SECOND && age < 2 * SECOND;
      before = isNext ? now : new Map();
      allBefore = isNext ? all : 0;
      now = new Map();
      since = clock.now();
      all = 0;
    }
    const own = (now.get(name) ?? 0) + 1;
    now.set(name, own);
    all += 1;
    return { own, ownBefore: before.get(name) ?? 0, all, allBefore };
  };
};
