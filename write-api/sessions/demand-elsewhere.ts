import { randomUUID } from 'node:crypto';
import { MINUTE } from '../../domain/kernel/time.ts';
import type { Clock } from '../../platform/clock.ts';
import { createKeptOut } from '../../platform/kept-out.ts';
import type { SharedNotes } from '../../platform/kept-out-exchange.ts';
import { countBySecond } from './count-by-second.ts';

/** Exchanges between processes what the first captures of networks want, while some of them are rejected. */
export interface DemandElsewhere {
  /** Returns how many such captures a second the other processes had that rejected some within the last minute. */
  wanted(): number;
  /** Counts such a capture of this process. */
  count(isRejected: boolean): void;
}

/** `shared`: null ignores other processes. */
export const createDemandElsewhere = (clock: Clock, shared: SharedNotes | null): DemandElsewhere => {
  const thisProcess = randomUUID();
  const countHere = countBySecond(clock);
  const wantedHere = (more: number): number => {
    const { own, ownBefore } = countHere(thisProcess, more);
    return Math.max(own, ownBefore);
  };
  const stillWants = () => wantedHere(0);
  const processes = createKeptOut({ windowMs: MINUTE, now: clock.now, shared, stillWants });
  return {
    wanted: () => processes.wantedByOthers(thisProcess).reduce((sum, one) => sum + one, 0),
    count: (isRejected) => {
      wantedHere(1);
      if (isRejected) processes.note(thisProcess);
    },
  };
};
