import { LRUCache } from 'lru-cache';
import type { Clock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config.ts';
import { createKeptOut } from '../../platform/kept-out.ts';
import type { RateLimiter, Verdict } from '../../platform/rate-limit.ts';
import { countBySecond, SECOND } from './count-by-second.ts';

export type NetworkRates = Pick<
  Config,
  'CAPTURES_PER_SECOND' | 'CAPTURES_PER_SECOND_PER_TRACKER' | 'CAPTURES_PER_SECOND_PER_VISITOR'
>;

/** What a network has of all captures: all of them, much beside others, or little. */
export type NetworkShare = 'all' | 'heavy' | 'light';

const HELD_MS = 10_000;
const NETWORKS = 10_000;
/** The part of all captures from which on a network is heavy, if it has more than a visitor's. */
const HEAVY = 1 / 4;
/** Fewer captures of others in a second are no reason to leave room for them before they are rejected. */
const FEW = 5;
/** A rate that fluctuates, as visits do, needs more room than it had in a second. */
export const ROOM_TIMES = 2;

/**
 * Shares the rates that captures of all visitors use. A network may use all of them while it is alone. Beside others, a heavy one
 * leaves them twice what they want, at most half of the rate; and while captures from others are rejected, it has an equal part
 * of a tracker's rate, at least the rate of a visitor. One that wants more than its part keeps to it until it has wanted no more
 * for ten seconds: otherwise it would shut out the others in every other second.
 */
export const createNetworkShares = (config: NetworkRates, limiter: RateLimiter, clock: Clock) => {
  // Of this process alone: a balancer sends some of every network's visitors to each.
  // For the rates' own window: a peak that has passed limits no network.
  const keptOut = createKeptOut({ windowMs: SECOND, now: clock.now, shared: null });
  const held = new LRUCache<string, { readonly part: number; readonly until: number }>({ max: NETWORKS });
  const count = countBySecond(clock);

  const partBeside = (network: string, wantedByOthers: number): number => {
    const all = config.CAPTURES_PER_SECOND;
    const beside = Math.max(all / 2, all - ROOM_TIMES * wantedByOthers);
    // It has had a visitor's rate before it became heavy.
    const left = wantedByOthers < FEW ? all : beside - config.CAPTURES_PER_SECOND_PER_VISITOR;
    const rejected = keptOut.others(network);
    return rejected === 0 ? left : Math.min(left, config.CAPTURES_PER_SECOND_PER_TRACKER / (1 + rejected));
  };

  const isHeavyIn = (own: number, all: number): boolean =>
    own > Math.max(config.CAPTURES_PER_SECOND_PER_VISITOR, HEAVY * all);

  const heldTo = (network: string): number => {
    const before = held.get(network);
    return before && before.until > clock.now() ? before.part : Number.POSITIVE_INFINITY;
  };

  /** `admit` spends the shared rates. */
  return async (network: string, admit: (share: NetworkShare) => Promise<Verdict>): Promise<Verdict> => {
    const { own, ownBefore, all, allBefore } = count(network);
    const wantedByOthers = Math.max(all - own, allBefore - ownBefore);
    // Of its own seconds: networks in turn would each be light in what the one before has sent.
    const isHeavy = isHeavyIn(own, all) || isHeavyIn(ownBefore, allBefore);
    const share = wantedByOthers === 0 ? 'all' : isHeavy ? 'heavy' : 'light';
    const beside = share === 'heavy' ? partBeside(network, wantedByOthers) : Number.POSITIVE_INFINITY;
    const part = Math.max(
      config.CAPTURES_PER_SECOND_PER_VISITOR,
      Math.floor(Math.min(beside, heldTo(network))),
    );
    if (part < config.CAPTURES_PER_SECOND) {
      const beyond = await limiter.admit(`captures from ${network}`, part);
      if (beyond !== null) {
        held.set(network, { part, until: clock.now() + HELD_MS });
        return beyond;
      }
    }
    const verdict = await admit(share);
    if (verdict !== null && share !== 'heavy') keptOut.note(network);
    return verdict;
  };
};
