import { LRUCache } from 'lru-cache';
import type { Clock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config.ts';
import { createKeptOut } from '../../platform/kept-out.ts';
import type { RateLimiter, Verdict } from '../../platform/rate-limit.ts';

export type NetworkRates = Pick<
  Config,
  'CAPTURES_PER_SECOND_PER_TRACKER' | 'CAPTURES_PER_SECOND_PER_VISITOR'
>;

const NETWORKS = 10_000;

/** The rates' own window: a peak that has passed limits no network. */
const NOTED_MS = 1_000;
const HELD_MS = 10_000;

/**
 * Shares the rates that captures of all visitors use. A network may use all of them; while captures from others are rejected,
 * it has an equal part of a tracker's rate, at least the rate of a visitor. One that wants more than its part keeps to it until
 * it has wanted no more for ten seconds: otherwise it would shut out the others in every other second.
 */
export const createNetworkShares = (config: NetworkRates, limiter: RateLimiter, clock: Clock) => {
  // Of this process alone: a balancer sends some of every network's visitors to each.
  const keptOut = createKeptOut({ windowMs: NOTED_MS, now: clock.now, shared: null });
  const limited = new LRUCache<string, { readonly part: number; readonly until: number }>({ max: NETWORKS });

  const partOf = (network: string): number => {
    const others = keptOut.others(network);
    const equal =
      others === 0 ? Number.POSITIVE_INFINITY : config.CAPTURES_PER_SECOND_PER_TRACKER / (1 + others);
    const before = limited.get(network);
    const part = before && before.until > clock.now() ? Math.min(before.part, equal) : equal;
    return Math.max(config.CAPTURES_PER_SECOND_PER_VISITOR, Math.floor(part));
  };

  const beyondPart = async (network: string): Promise<Verdict> => {
    const part = partOf(network);
    if (part === Number.POSITIVE_INFINITY) return null;
    const verdict = await limiter.admit(`captures from ${network}`, part);
    if (verdict !== null) limited.set(network, { part, until: clock.now() + HELD_MS });
    return verdict;
  };

  /** `admit` spends the shared rates. */
  return async (network: string, admit: () => Promise<Verdict>): Promise<Verdict> => {
    const beyond = await beyondPart(network);
    if (beyond !== null) return beyond;
    const verdict = await admit();
    if (verdict !== null) keptOut.note(network);
    return verdict;
  };
};
