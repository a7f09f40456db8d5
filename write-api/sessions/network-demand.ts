import type { Clock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config.ts';
import { createLocalLimiter } from '../../platform/local-limiter.ts';
import { countBySecond } from './count-by-second.ts';
import type { Elsewhere } from './demand-elsewhere.ts';
import { createPeaks } from './peaks.ts';

export type NetworkRates = Pick<
  Config,
  'CAPTURES_PER_SECOND' | 'CAPTURES_PER_SECOND_PER_TRACKER' | 'CAPTURES_PER_SECOND_PER_VISITOR'
>;

export interface NetworkDemand {
  /** Whether it is one of as many as a network has first in a second. */
  readonly isFirst: boolean;
  /** Whether it is one of the few of its network that there may be room for again in a burst. */
  readonly isOfBurst: boolean;
  /** What this process has left in a second for captures beyond the first of all networks: of the service's rate, and of the tracker's. */
  readonly left: number;
  readonly leftThere: number;
}

/** Room for first captures where there are few: visits come at any moment. */
const LEAST_ROOM = 10;

/** Returns the room that first captures have beside those that there are: as much as their number deviates, if they are independent. */
const roomBeside = (first: number, rate: number): number =>
  Math.max(Math.min(LEAST_ROOM, rate / 4), Math.sqrt(first));

/**
 * Captures of a network in a second that count for bursts: these come from many networks, one or two of each. With ten of each, five
 * networks that send sixty twice a minute would keep half of a tracker's rate empty.
 */
const FEW = 2;
const NONE = { isFirst: false, isOfBurst: false };

/** Counts first captures by a group: those in this second or the one before, those of other networks, and those in the largest lately. */
const createFirst = (clock: Clock) => {
  const countIn = countBySecond(clock);
  const countFrom = countBySecond(clock);
  const countOfBurst = countBySecond(clock);
  const peakOf = createPeaks(clock);

  /** Counts a capture if it is one. */
  return (
    group: string,
    network: string,
    { isFirst, isOfBurst }: Pick<NetworkDemand, 'isFirst' | 'isOfBurst'>,
  ) => {
    const all = countIn(group, isFirst ? 1 : 0);
    const own = countFrom(`${network} ${group}`, isFirst ? 1 : 0);
    const ofBurst = countOfBurst(group, isOfBurst ? 1 : 0);
    return {
      wanted: Math.max(all.own, all.ownBefore),
      ofOthers: Math.max(all.own - own.own, all.ownBefore - own.ownBefore),
      peak: peakOf(group, Math.max(ofBurst.own, ofBurst.ownBefore)),
    };
  };
};

/** What is known of the captures that others have for a rate. */
export interface Others extends Omit<Elsewhere, 'isShort'> {
  /** Whether first ones of other networks were rejected lately, which is why there is room for them. */
  readonly areShort: boolean;
}

/** Returns what the networks of this process may have beside those of others: all up to an equal level (max-min fairness). */
const partOfNetworks = (left: number, { beyond, networksHere }: Others): number => {
  if (beyond.length === 0) return left;
  const perNetwork = beyond.map(({ captures, networks }) => ({ wanted: captures / networks, networks }));
  let rest = left;
  let sharing = perNetwork.reduce((sum, { networks }) => sum + networks, networksHere);
  for (const { wanted, networks } of perNetwork.sort((one, other) => one.wanted - other.wanted)) {
    if (wanted >= rest / sharing) break;
    rest -= wanted * networks;
    sharing -= networks;
  }
  return Math.max(1, Math.floor((rest * networksHere) / sharing));
};

/** What networks (digests) want of the service's rate, and of their trackers' rates. */
export interface NetworkDemands {
  /** Counts a capture from a network to a tracker, and returns what is left for it. */
  of(network: string, trackerId: string, atService: Others, there: Others): NetworkDemand;
  /** Counts a first one that its tracker has admitted: those that it refuses are none of the service's. */
  countFirst(network: string, demand: NetworkDemand): void;
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
  const firsts = createLocalLimiter(clock);
  const firstOfAll = createFirst(clock);
  const firstOfTracker = createFirst(clock);

  // Visits come in bursts, such as those after a newsletter: there is room for the next as for the last, of half of the rate.
  const leftOf = (
    rate: number,
    { wanted, peak, ofOthers }: ReturnType<typeof firstOfAll>,
    others: Others,
    spread: number,
  ): number => {
    const { areShort, first, peak: peakElsewhere } = others;
    const byNow = wanted + first;
    const atMost = Math.max(spread * peak, peak + peakElsewhere);
    const expected = areShort ? Math.max(byNow, Math.min(atMost, rate / 2)) : byNow;
    const left = Math.floor(rate - expected - (areShort ? roomBeside(ofOthers + first, rate) : 0));
    return left < 1 ? left : partOfNetworks(left, others);
  };

  return {
    of: (network, trackerId, atService, there) => {
      const { own } = countFrom(network);
      const spread = sharing();
      const most = Math.ceil(rates.CAPTURES_PER_SECOND_PER_VISITOR / spread);
      // Of any second: with those of whole ones, a flood that begins at the end of one would have twice as many first.
      const isFirst = firsts.admit(network, most) === null;
      const which = { isFirst, isOfBurst: isFirst && own <= Math.max(1, Math.round(FEW / spread)) };
      return {
        ...which,
        left: leftOf(ofAll, firstOfAll('', network, NONE), atService, spread),
        leftThere: leftOf(ofTracker, firstOfTracker(trackerId, network, which), there, spread),
      };
    },
    countFirst: (network, demand) => void firstOfAll('', network, demand),
  };
};
