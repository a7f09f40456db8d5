import type { Clock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config.ts';
import { fairPart } from '../../platform/fair-rate.ts';
import { countBySecond } from './count-by-second.ts';
import { createPeaks } from './peaks.ts';

export type NetworkRates = Pick<
  Config,
  'CAPTURES_PER_SECOND' | 'CAPTURES_PER_SECOND_PER_TRACKER' | 'CAPTURES_PER_SECOND_PER_VISITOR'
>;

export interface NetworkDemand {
  /** Whether it is one of as many as a network has first in a second. */
  readonly isFirst: boolean;
  /** Whether no other network had any in this second and the one before. */
  readonly isAlone: boolean;
  /** What this process has left in a second for captures beyond the first of all networks: of the service's rate, and of the tracker's. */
  readonly left: number;
  readonly leftThere: number;
  /** At the tracker: what the others do not want, at least half. */
  readonly leftForNetworkThere: number;
}

/** Room for first captures where there are few: visits come at any moment. */
const LEAST_ROOM = 10;

/** Returns the room that first captures have beside those that there are: as much as their number deviates, if they are independent. */
const roomBeside = (first: number, rate: number): number =>
  Math.max(Math.min(LEAST_ROOM, rate / 4), Math.sqrt(first));

/** Counts captures by a group. */
const createCounts = (clock: Clock) => {
  const countIn = countBySecond(clock);
  const countFrom = countBySecond(clock);

  /** Counts a capture if it is one. @returns those of the group in this second or the one before, and those of other networks */
  return (group: string, network: string, isOne: boolean) => {
    const all = countIn(group, isOne ? 1 : 0);
    const own = countFrom(`${network} ${group}`, isOne ? 1 : 0);
    return {
      wanted: Math.max(all.own, all.ownBefore),
      ofOthers: Math.max(all.own - own.own, all.ownBefore - own.ownBefore),
    };
  };
};

/** Counts first captures by a group, and returns how many there were in the largest second lately too. */
const createFirst = (clock: Clock) => {
  const count = createCounts(clock);
  const peakOf = createPeaks(clock);
  return (group: string, network: string, isOne: boolean) => {
    const counts = count(group, network, isOne);
    return { ...counts, peak: peakOf(group, counts.wanted) };
  };
};

/** What is known of the captures that others have for a rate. */
export interface Others {
  /** Whether first ones of other networks were rejected lately, which is why there is room for them. */
  readonly areShort: boolean;
  /** How many first ones a second other processes have, as far as it is known. */
  readonly first: number;
  /** How many first ones they had in their largest seconds lately, where some were rejected. */
  readonly peak: number;
  /** How many beyond those each other process has, as far as it is known. */
  readonly beyond: readonly number[];
}

/** What networks (digests) want of the service's rate, and of their trackers' rates. */
export interface NetworkDemands {
  /** Counts a capture from a network to a tracker, and returns what is left for it. */
  of(network: string, trackerId: string, atService: Others, there: Others): NetworkDemand;
  /** Counts a first one that its tracker has admitted: those that it refuses are none of the service's. */
  countFirst(network: string): void;
}

/**
 * The first captures of a network in a second, as many as one visitor may have, come before those beyond: visits come from many
 * networks, a few from each. `sharing`: returns over how many processes a balancer spreads the captures of each network.
 */
export const createNetworkDemands = (
  rates: NetworkRates,
  clock: Clock,
  sharing: () => number,
): NetworkDemands => {
  const ofAll = rates.CAPTURES_PER_SECOND;
  const ofTracker = rates.CAPTURES_PER_SECOND_PER_TRACKER;
  const countFrom = countBySecond(clock);
  const firstOfAll = createFirst(clock);
  const firstOfTracker = createFirst(clock);
  const beyondOfTracker = createCounts(clock);

  // Visits come in bursts, such as those after a newsletter: there is room for the next as for the last, of half of the rate.
  const leftOf = (
    rate: number,
    { wanted, peak, ofOthers }: ReturnType<typeof firstOfAll>,
    { areShort, first, peak: peakElsewhere, beyond }: Others,
    spread: number,
  ): number => {
    const byNow = wanted + first;
    const atMost = Math.max(spread * peak, peak + peakElsewhere);
    const expected = areShort ? Math.max(byNow, Math.min(atMost, rate / 2)) : byNow;
    const left = Math.floor(rate - expected - (areShort ? roomBeside(ofOthers + first, rate) : 0));
    return left < 1 ? left : fairPart(left, beyond);
  };

  return {
    of: (network, trackerId, atService, there) => {
      const { own, ownBefore, all, allBefore } = countFrom(network);
      const spread = sharing();
      const isFirst = own <= Math.ceil(rates.CAPTURES_PER_SECOND_PER_VISITOR / spread);
      const leftThere = leftOf(ofTracker, firstOfTracker(trackerId, network, isFirst), there, spread);
      const { ofOthers } = beyondOfTracker(trackerId, network, !isFirst);
      return {
        isFirst,
        isAlone: atService.first === 0 && own === all && ownBefore === allBefore,
        left: leftOf(ofAll, firstOfAll('', network, false), atService, spread),
        leftThere,
        leftForNetworkThere: Math.floor(Math.max(leftThere - ofOthers, leftThere / 2)),
      };
    },
    countFirst: (network) => void firstOfAll('', network, true),
  };
};
