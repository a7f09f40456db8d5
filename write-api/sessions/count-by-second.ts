import type { Clock } from '../../platform/clock.ts';
import { Counts } from '../../platform/counts.ts';
import { createWindows } from './windows.ts';

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
  const windows = createWindows(clock, SECOND, () => ({ counts: new Counts(), all: 0 }));
  return (name, more = 1) => {
    const { now, before } = windows();
    now.counts.add(name, more);
    now.all += more;
    return {
      own: now.counts.of(name),
      ownBefore: before.counts.of(name),
      all: now.all,
      allBefore: before.all,
    };
  };
};
