import type { Clock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config.ts';
import { type Counted, countBySecond } from './count-by-second.ts';

/** What a network has of all captures: all of them, much beside others, or little. */
export type NetworkShare = 'all' | 'heavy' | 'light';

/** Captures that were sent in the current second or the one before, whichever are more, admitted or not. */
export interface NetworkDemand {
  readonly share: NetworkShare;
  readonly own: number;
  readonly ofOthers: number;
  /** Of other networks, to the same tracker; those at other processes may all be to it. */
  readonly ofOthersThere: number;
  /** Of others at other processes, which rejected some lately; part of both. */
  readonly elsewhere: number;
}

/** The part of all captures from which on a network is heavy, if it has more than a visitor's. */
const HEAVY = 1 / 4;

/**
 * Counts a capture from a network (a digest) to a tracker, and returns what the network and the others want. `elsewhere`: what
 * others want in a second at other processes.
 */
export const createNetworkDemand = (
  { CAPTURES_PER_SECOND_PER_VISITOR }: Pick<Config, 'CAPTURES_PER_SECOND_PER_VISITOR'>,
  clock: Clock,
  elsewhere: () => number,
): ((network: string, trackerId: string) => NetworkDemand) => {
  const countFrom = countBySecond(clock);
  const countTo = countBySecond(clock);
  const countFromTo = countBySecond(clock);

  const isHeavyIn = (own: number, all: number): boolean =>
    own > Math.max(CAPTURES_PER_SECOND_PER_VISITOR, HEAVY * all);

  const shareOf = ({ own, ownBefore, all, allBefore }: Counted, more: number): NetworkShare => {
    if (more === 0 && own === all && ownBefore === allBefore) return 'all';
    // Of its own seconds: networks in turn would each be light in what the one before has sent.
    return isHeavyIn(own, all + more) || isHeavyIn(ownBefore, allBefore + more) ? 'heavy' : 'light';
  };

  return (network, trackerId) => {
    const from = countFrom(network);
    const to = countTo(trackerId);
    const fromTo = countFromTo(`${network} ${trackerId}`);
    const more = elsewhere();
    return {
      share: shareOf(from, more),
      own: Math.max(from.own, from.ownBefore),
      ofOthers: Math.max(from.all - from.own, from.allBefore - from.ownBefore) + more,
      ofOthersThere: Math.max(to.own - fromTo.own, to.ownBefore - fromTo.ownBefore) + more,
      elsewhere: more,
    };
  };
};
