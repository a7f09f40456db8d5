import { MINUTE } from '../../domain/kernel/time.ts';
import type { Clock } from '../../platform/clock.ts';
import { createKeptOut } from '../../platform/kept-out.ts';
import type { SharedNotes } from '../../platform/kept-out-exchange.ts';
import { countBySecond } from './count-by-second.ts';
import { createPeaks } from './peaks.ts';

/** What the other processes have of a rate in a second, as far as it is known. */
export interface Elsewhere {
  /** Whether first captures lacked room there lately. */
  readonly isShort: boolean;
  readonly first: number;
  /** First ones in the largest seconds lately of those where they did. */
  readonly peak: number;
  /** Beyond the first, at each. */
  readonly beyond: readonly number[];
}

/** Exchanges between processes how many captures each has. Trackers are named by their ids; null is the rate of all. */
export interface DemandElsewhere {
  of(trackerId: string | null): Elsewhere;
  /** Over how many processes captures are spread, by how many first ones each has: those beyond may be a flood at one of them. */
  sharing(): number;
  /** Counts a capture of this process that is one of the first of its network; `isShort`: others need room for such. */
  countFirst(trackerId: string | null, which: { isOfBurst: boolean; isShort: boolean }): void;
  countBeyond(trackerId: string | null): void;
  /** Returns how many captures a second there are of all processes, as far as it is known. */
  inAll(trackerId: string | null): number;
}

/** Less counts as nothing: it is what is kept for processes that send nothing more. */
const LEAST = 1;

const FIRST = 'first';
const BEYOND = 'beyond';
const SHORT = 'short';
/** The name of a count beside those of other rates. */
const named = (kind: string, trackerId: string | null): string =>
  trackerId === null ? kind : `${kind} of ${trackerId}`;

const sumOf = (counts: readonly number[]): number => counts.reduce((sum, one) => sum + one, 0);

export interface Sharing {
  /** null: ignores other processes. */
  readonly notes: SharedNotes | null;
  /** From so many a second at all processes, captures beyond the first of a tracker are shared: a flood may name hundreds of trackers. */
  readonly trackerFrom: number;
  readonly processes: () => number;
}

/**
 * Shares how many first captures this process has and how many beyond; of a tracker, the first ones for a minute after it rejected some,
 * and those beyond while they are many.
 */
export const createDemandElsewhere = (clock: Clock, shared: Sharing): DemandElsewhere => {
  const countHere = countBySecond(clock);
  const countMore = (name: string, more: number): number => {
    const { own, ownBefore } = countHere(name, more);
    return Math.max(own, ownBefore);
  };
  const here = (name: string): number => countMore(name, 0);
  const peakOf = createPeaks(clock);
  const peakHere = (name: string): number => peakOf(name, here(name));
  const keptOut = createKeptOut({
    windowMs: MINUTE,
    now: clock.now,
    shared: shared.notes,
    stillWants: (name) => (name.startsWith(SHORT) ? peakHere(name) : here(name)),
  });
  const others = (name: string): readonly number[] =>
    shared.processes() > 1 ? keptOut.wantedElsewhere(name).filter((wanted) => wanted >= LEAST) : [];
  const count = (name: string, more: number, isShared: boolean): void => {
    countMore(name, more);
    if (isShared && shared.processes() > 1) keptOut.note(name);
  };
  return {
    of: (trackerId) => {
      const peaks = others(named(SHORT, trackerId));
      return {
        isShort: peaks.length > 0,
        first: sumOf(others(named(FIRST, trackerId))),
        peak: sumOf(peaks),
        beyond: others(named(BEYOND, trackerId)),
      };
    },
    sharing: () => Math.min(shared.processes(), 1 + sumOf(others(FIRST)) / Math.max(1, here(FIRST))),
    countFirst: (trackerId, { isOfBurst, isShort }) => {
      count(named(FIRST, trackerId), 1, trackerId === null || isShort);
      // Counts all: what is wanted is room for as many as in the largest second.
      count(named(SHORT, trackerId), isOfBurst ? 1 : 0, isShort);
      peakHere(named(SHORT, trackerId));
    },
    countBeyond: (trackerId) => {
      const name = named(BEYOND, trackerId);
      count(name, 1, trackerId === null || here(name) >= shared.trackerFrom / shared.processes());
    },
    inAll: (trackerId) =>
      [FIRST, BEYOND]
        .map((kind) => named(kind, trackerId))
        .reduce((sum, name) => sum + here(name) + sumOf(others(name)), 0),
  };
};
