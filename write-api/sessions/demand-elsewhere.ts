import { MINUTE } from '../../domain/kernel/time.ts';
import type { Clock } from '../../platform/clock.ts';
import { createKeptOut } from '../../platform/kept-out.ts';
import type { SharedNotes } from '../../platform/kept-out-exchange.ts';
import { countBySecond } from './count-by-second.ts';

/** Exchanges between processes what the first captures of networks want of a rate, while some of them are rejected. */
export interface DemandElsewhere {
  /** Returns how many such captures a second the other processes had for a rate that rejected some of theirs within the last minute. */
  wanted(rate: string): number;
  /** Counts such a capture of this process. */
  count(rate: string, isRejected: boolean): void;
}

/** `shared`: null ignores other processes. */
export const createDemandElsewhere = (clock: Clock, shared: SharedNotes | null): DemandElsewhere => {
  const countHere = countBySecond(clock);
  const wantedHere = (rate: string, more: number): number => {
    const { own, ownBefore } = countHere(rate, more);
    return Math.max(own, ownBefore);
  };
  const stillWants = (rate: string): number => wantedHere(rate, 0);
  const keptOut = createKeptOut({ windowMs: MINUTE, now: clock.now, shared, stillWants });
  return {
    wanted: keptOut.wantedElsewhere,
    count: (rate, isRejected) => {
      wantedHere(rate, 1);
      if (isRejected) keptOut.note(rate);
    },
  };
};
