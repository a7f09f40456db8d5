import { LRUCache } from 'lru-cache';
import type { Clock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config.ts';
import { createKeptOut } from '../../platform/kept-out.ts';
import type { RateLimiter, Verdict } from '../../platform/rate-limit.ts';
import { countBySecond } from './count-by-second.ts';

export type NetworkRates = Pick<
  Config,
  'CAPTURES_PER_SECOND_PER_TRACKER' | 'CAPTURES_PER_SECOND_PER_VISITOR'
>;

/** The rates' own window: a peak that has passed limits no network. */
const SECOND = 1_000;
const HELD_MS = 10_000;
const NETWORKS = 10_000;
/** The part of all captures from which on a network is heavy, if it has more than a visitor's. */
const HEAVY = 1 / 4;

/**
 * Shares the rates that captures of all visitors use. A network may use all of them; while captures from others are rejected,
 * a heavy one has an equal part of a tracker's rate, at least the rate of a visitor. One that wants more than its part keeps to
 * it until it has wanted no more for ten seconds: otherwise it would shut out the others in every other second.
 */
export const createNetworkShares = (config: NetworkRates, limiter: RateLimiter, clock: Clock) => {
  // Of this process alone: a balancer sends some of every network's visitors to each.
  const keptOut = createKeptOut({ windowMs: SECOND, now: clock.now, shared: null });
  const held = new LRUCache<string, { readonly part: number; readonly until: number }>({ max: NETWORKS });
  const wanted = countBySecond(clock);

  /** Returns the part that a network has; null: it may use the whole rates. */
  const partOf = (network: string, isHeavy: boolean): number | null => {
    const others = isHeavy ? keptOut.others(network) : 0;
    const equal = others === 0 ? null : Math.floor(config.CAPTURES_PER_SECOND_PER_TRACKER / (1 + others));
    const before = held.get(network);
    const kept = before && before.until > clock.now() ? before.part : null;
    if (equal === null) return kept;
    return Math.max(config.CAPTURES_PER_SECOND_PER_VISITOR, Math.min(equal, kept ?? equal));
  };

  /** `admit` spends the shared rates. What a heavy network lacks there (`isHeavy`) is for want of its own part. */
  return async (network: string, admit: (isHeavy: boolean) => Promise<Verdict>): Promise<Verdict> => {
    const { own, all, hasOthers } = wanted(network);
    const isHeavy = hasOthers && own > Math.max(config.CAPTURES_PER_SECOND_PER_VISITOR, all * HEAVY);
    const part = partOf(network, isHeavy);
    const beyond = part === null ? null : await limiter.admit(`captures from ${network}`, part);
    if (part !== null && beyond !== null) {
      held.set(network, { part, until: clock.now() + HELD_MS });
      return beyond;
    }
    const verdict = await admit(isHeavy);
    if (verdict !== null && !isHeavy) keptOut.note(network);
    return verdict;
  };
};
