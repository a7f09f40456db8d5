import type { Clock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config.ts';
import { fairLevel } from '../../platform/fair-rate.ts';
import { countBySecond } from './count-by-second.ts';

export type NetworkRates = Pick<
  Config,
  'CAPTURES_PER_SECOND' | 'CAPTURES_PER_SECOND_PER_TRACKER' | 'CAPTURES_PER_SECOND_PER_VISITOR'
>;

export interface NetworkDemand {
  /** Whether it is one of as many as a network has first in a second. */
  readonly isFirst: boolean;
  /** Whether no other network had any in this second and the one before. */
  readonly isAlone: boolean;
  /** What is left in a second for captures beyond the first of all networks: of the service's rate, of the tracker's, and for this network. */
  readonly left: number;
  readonly leftThere: number;
  readonly leftForNetwork: number;
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

  /** Counts a capture if it is of those. @returns how many there are by now and in a second, and those of others */
  return (group: string, network: string, isOne: boolean) => {
    const all = countIn(group, isOne ? 1 : 0);
    const own = countFrom(`${network} ${group}`, isOne ? 1 : 0);
    return {
      byNow: all.own,
      wanted: Math.max(all.own, all.ownBefore),
      ofOthers: Math.max(all.own - own.own, all.ownBefore - own.ownBefore),
    };
  };
};

/** What networks (digests) want of the service's rate, and of their trackers' rates. */
export interface NetworkDemands {
  /**
   * Counts a capture from a network to a tracker, and returns what is left for it. `isShort`: whether some of others were rejected
   * lately, which is why there is room for them. `elsewhere`: how many first captures a second other processes have that rejected some.
   */
  of(network: string, trackerId: string, isShort: boolean, elsewhere: number): NetworkDemand;
  /** Counts one beyond the first that its tracker leaves room for: those that it refuses are none of the service's. */
  countBeyond(network: string): void;
}

/**
 * The first captures of a network in a second, as many as one visitor may have, come before those beyond: visits come from many
 * networks, a few from each. `processes`: returns their number, over which a balancer may spread the captures of each network.
 */
export const createNetworkDemands = (
  rates: NetworkRates,
  clock: Clock,
  processes: () => number,
): NetworkDemands => {
  const ofAll = rates.CAPTURES_PER_SECOND;
  const ofTracker = rates.CAPTURES_PER_SECOND_PER_TRACKER;
  const ofVisitor = rates.CAPTURES_PER_SECOND_PER_VISITOR;
  /** Of each process. */
  const mostFirst = (sharing: number): number => Math.ceil(ofVisitor / sharing);
  let level = Number.POSITIVE_INFINITY;
  let levelIfShort = Number.POSITIVE_INFINITY;
  const countFrom = countBySecond(clock);
  const countWithin = countBySecond(clock, (wanted) => {
    const sharing = processes();
    const most = mostFirst(sharing);
    const first = wanted.reduce((sum, one) => sum + Math.min(one, most), 0);
    const several = wanted.length > 1 ? wanted.map((one) => sharing * one) : [];
    level = fairLevel(ofAll, several);
    levelIfShort = fairLevel(ofAll - roomBeside(sharing * first, ofAll), several);
  });
  const firstOfAll = createCounts(clock);
  const firstOfTracker = createCounts(clock);
  const beyondOfTracker = createCounts(clock);

  const leftOf = (
    rate: number,
    { wanted, ofOthers }: ReturnType<typeof firstOfAll>,
    more: number,
    isShort: boolean,
  ): number => Math.floor(rate - wanted - more - (isShort ? roomBeside(ofOthers + more, rate) : 0));

  return {
    of: (network, trackerId, isShort, elsewhere) => {
      const { own, ownBefore, all, allBefore } = countFrom(network);
      const isFirst = own <= mostFirst(processes());
      const firstThere = firstOfTracker(trackerId, network, isFirst);
      // Those that its tracker refuses are none of the service's.
      const isFirstOfAll = isFirst && firstThere.byNow <= ofTracker;
      countWithin(network, isFirstOfAll ? 1 : 0);
      // It is not known to which tracker those elsewhere are.
      const leftThere = leftOf(ofTracker, firstThere, Math.min(elsewhere, ofTracker / 2), isShort);
      const { ofOthers } = beyondOfTracker(trackerId, network, !isFirst);
      return {
        isFirst,
        isAlone: elsewhere === 0 && own === all && ownBefore === allBefore,
        left: leftOf(ofAll, firstOfAll('', network, isFirstOfAll), elsewhere, isShort),
        leftThere,
        leftForNetwork: Math.floor(Math.min((isShort ? levelIfShort : level) - ofVisitor, ofAll)),
        leftForNetworkThere: Math.floor(Math.max(leftThere - ofOthers, leftThere / 2)),
      };
    },
    countBeyond: (network) => void countWithin(network),
  };
};
