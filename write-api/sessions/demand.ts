import { LRUCache } from 'lru-cache';
import type { Clock } from '../../platform/clock.ts';
import { LITTLE } from '../../platform/kept-out.ts';

/** Time over which visits are averaged: a partner with one now and then would otherwise have the room of one each second. */
const AVERAGED_MS = 5_000;
const PARTNERS = 10_000;

/**
 * What partners want of a rate by now: as much as they have sent lately. One who names many partners in a moment would
 * otherwise keep the room of all of them, unused, for as long as their rejections count.
 */
export const createDemand = (clock: Clock) => {
  const sent = new LRUCache<string, { readonly at: number; readonly perSecond: number }>({ max: PARTNERS });

  const perSecondOf = (partnerId: string): number => {
    const before = sent.get(partnerId);
    if (before === undefined) return 0;
    return before.perSecond * Math.exp(-Math.abs(clock.now() - before.at) / AVERAGED_MS);
  };

  return {
    count: (partnerId: string): void => {
      const perSecond = perSecondOf(partnerId) + 1_000 / AVERAGED_MS;
      sent.set(partnerId, { at: clock.now(), perSecond });
    },
    of: (partnerId: string): number => perSecondOf(partnerId) + LITTLE,
  };
};
