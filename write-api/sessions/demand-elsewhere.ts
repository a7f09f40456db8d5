import { MINUTE } from '../../domain/kernel/time.ts';
import type { Clock } from '../../platform/clock.ts';
import { createKeptOut } from '../../platform/kept-out.ts';
import type { SharedNotes } from '../../platform/kept-out-exchange.ts';
import { countBySecond } from './count-by-second.ts';
import { createPeaks } from './peaks.ts';

/** Captures beyond the first of a process in a second, and of how many networks they are, as if these had equal parts. */
export interface Beyond {
  readonly captures: number;
  readonly networks: number;
}

/** What the processes have of a rate in a second, as far as it is known. */
export interface Elsewhere {
  /** Whether first captures lacked room there lately. */
  readonly isShort: boolean;
  readonly first: number;
  /** First ones in the largest seconds lately of those where they did. */
  readonly peak: number;
  /** Of each other process. */
  readonly beyond: readonly Beyond[];
  /** Networks that have some beyond the first at this process. */
  readonly networksHere: number;
}

/** Exchanges between processes how many captures each has. Trackers are named by their ids; null is the rate of all. */
export interface DemandElsewhere {
  of(trackerId: string | null): Elsewhere;
  /** Over how many processes captures are spread, by how many first ones each has: those beyond may be a flood at one of them. */
  sharing(): number;
  /** Counts a capture of this process that is one of the first of its network; `isShort`: others need room for such. */
  countFirst(trackerId: string | null, which: { isOfBurst: boolean; isShort: boolean }): void;
  countBeyond(trackerId: string | null, network: string): void;
  /** Returns how many captures a second there are of all processes, as far as it is known. */
  inAll(trackerId: string | null): number;
}

/** Less counts as nothing: it is what is kept for processes that send nothing more. */
const LEAST = 1;

const FIRST = 'first';
const BEYOND = 'beyond';
/** The sum of the squares of what each network has beyond the first. */
const SQUARES = 'squares';
const SHORT = 'short';
const NONE: ReadonlyMap<string, number> = new Map();
const NOTHING: Elsewhere = { isShort: false, first: 0, peak: 0, beyond: [], networksHere: 1 };
/** The name of a count beside those of other rates. */
const named = (kind: string, trackerId: string | null): string =>
  trackerId === null ? kind : `${kind} of ${trackerId}`;

const sumOf = (counts: ReadonlyMap<string, number>): number =>
  [...counts.values()].reduce((sum, one) => sum + one, 0);

/**
 * Returns how many networks of equal size have as many captures and as large a sum of squares. Their mere number would give a flood the
 * parts of others that have a few beside it.
 */
const networksOf = (captures: number, squares = captures ** 2): number =>
  Math.max(1, Math.round(captures ** 2 / Math.max(1, squares)));

export interface Sharing {
  /** null: ignores other processes. */
  readonly notes: SharedNotes | null;
  /** From so many a second at all processes, captures beyond the first of a tracker are shared: a flood may name hundreds of trackers. */
  readonly trackerFrom: number;
  readonly processes: () => number;
}

/** Counts by name, here and at the other processes. */
const createCounts = (clock: Clock, { notes, processes }: Sharing) => {
  const countHere = countBySecond(clock);
  /** Counts some more here. @returns how many there are in this second or the one before */
  const add = (name: string, more: number): number => {
    const { own, ownBefore } = countHere(name, more);
    return Math.max(own, ownBefore);
  };
  const here = (name: string): number => add(name, 0);
  const peakOf = createPeaks(clock);
  const peakHere = (name: string): number => peakOf(name, here(name));
  const keptOut = createKeptOut({
    windowMs: MINUTE,
    now: clock.now,
    shared: notes,
    stillWants: (name) => (name.startsWith(SHORT) ? peakHere(name) : here(name)),
  });
  return {
    here,
    peakHere,
    count: (name: string, more: number, isShared: boolean): void => {
      add(name, more);
      if (isShared && processes() > 1) keptOut.note(name);
    },
    /** Counts one more of a name. @returns what the square of their number grows by */
    addToSquare: (name: string): number => 2 * countHere(name).own - 1,
    /** By process. */
    others: (name: string): ReadonlyMap<string, number> => {
      if (processes() === 1) return NONE;
      return new Map([...keptOut.wantedElsewhere(name)].filter(([, wanted]) => wanted >= LEAST));
    },
  };
};

/**
 * Shares how many first captures this process has and how many beyond; of a tracker, the first ones for a minute after it rejected some,
 * and those beyond while they are many.
 */
export const createDemandElsewhere = (clock: Clock, shared: Sharing): DemandElsewhere => {
  const { here, peakHere, count, addToSquare, others } = createCounts(clock, shared);
  return {
    of: (trackerId) => {
      if (shared.processes() === 1) return NOTHING;
      const peaks = others(named(SHORT, trackerId));
      const squares = others(named(SQUARES, trackerId));
      const beyond = [...others(named(BEYOND, trackerId))];
      return {
        isShort: peaks.size > 0,
        first: sumOf(others(named(FIRST, trackerId))),
        peak: sumOf(peaks),
        beyond: beyond.map(([process, captures]) => ({
          captures,
          networks: networksOf(captures, squares.get(process)),
        })),
        networksHere: networksOf(here(named(BEYOND, trackerId)), here(named(SQUARES, trackerId))),
      };
    },
    sharing: () => {
      const own = Math.max(1, here(FIRST));
      const spread = [...others(FIRST).values()].reduce((sum, one) => sum + Math.min(1, one / own), 1);
      return Math.min(shared.processes(), spread);
    },
    countFirst: (trackerId, { isOfBurst, isShort }) => {
      count(named(FIRST, trackerId), 1, trackerId === null || isShort);
      // Counts all: what is wanted is room for as many as in the largest second.
      count(named(SHORT, trackerId), isOfBurst ? 1 : 0, isShort);
      peakHere(named(SHORT, trackerId));
    },
    countBeyond: (trackerId, network) => {
      const name = named(BEYOND, trackerId);
      const isShared = trackerId === null || here(name) >= shared.trackerFrom / shared.processes();
      count(name, 1, isShared);
      count(named(SQUARES, trackerId), addToSquare(`${name} from ${network}`), isShared);
    },
    inAll: (trackerId) =>
      [FIRST, BEYOND]
        .map((kind) => named(kind, trackerId))
        .reduce((sum, name) => sum + here(name) + sumOf(others(name)), 0),
  };
};
