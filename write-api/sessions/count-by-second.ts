import type { Clock } from '../../platform/clock.ts';

/** What was counted by name in the current second, and in the one before. */
export interface Counted {
  readonly own: number;
  readonly ownBefore: number;
  readonly all: number;
  /** Whether other names were counted too, in either. */
  readonly hasOthers: boolean;
}

const SECOND = 1_000;

/** Counts one more of a name each time it is called. */
export const countBySecond = (clock: Clock): ((name: string) => Counted) => {
  let since = Number.NEGATIVE_INFINITY;
  let all = 0;
  let now = new Map<string, number>();
  let before = new Map<string, number>();
  return (name) => {
    const age = clock.now() - since;
    if (age < 0 || age >= SECOND) {
      before = age >= SECOND && age < 2 * SECOND ? now : new Map();
      now = new Map();
      since = clock.now();
      all = 0;
    }
    const own = (now.get(name) ?? 0) + 1;
    now.set(name, own);
    all += 1;
    const othersBefore = before.size - (before.has(name) ? 1 : 0);
    return { own, ownBefore: before.get(name) ?? 0, all, hasOthers: now.size > 1 || othersBefore > 0 };
  };
};
