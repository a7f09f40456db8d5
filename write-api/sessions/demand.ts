import { LRUCache } from 'lru-cache';
import type { Clock } from '../../platform/clock.ts';
import { LITTLE } from '../../platform/kept-out.ts';
import { SECOND } from './count-by-second.ts';
import { ROOM_TIMES } from './network-shares.ts';

/** Time without visits after which a partner has little room: it would have no use of more. */
const SILENT_MS = 5_000;
const PARTNERS = 10_000;

interface Sent {
  /** Begin of the second that is counted. */
  readonly since: number;
  readonly count: number;
  /** Of the seconds before, each of which counts for half of the one after it. */
  readonly peak: number;
}

/**
 * What partners want of a rate by now: room for twice what they have sent in a second lately. One who names many partners in a moment
 * would otherwise keep the room of all of them, unused, for as long as their rejections count.
 */
export const createDemand = (clock: Clock) => {
  const sent = new LRUCache<string, Sent>({ max: PARTNERS });

  const peakOf = ({ since, count, peak }: Sent, at: number): number => {
    const seconds = Math.floor((at - since) / SECOND);
    return seconds <= 0 ? Math.max(count, peak) : Math.max(count, peak / 2) / 2 ** (seconds - 1);
  };

  return {
    count: (partnerId: string): void => {
      const at = clock.now();
      const before = sent.get(partnerId) ?? { since: at, count: 0, peak: 0 };
      const isSame = at - before.since < SECOND;
      const next = isSame
        ? { ...before, count: before.count + 1 }
        : { since: at, count: 1, peak: peakOf(before, at) };
      sent.set(partnerId, next);
    },
    of: (partnerId: string): number => {
      const before = sent.get(partnerId);
      const at = clock.now();
      if (before === undefined || at - before.since >= SILENT_MS) return LITTLE;
      return ROOM_TIMES * peakOf(before, at) + 1;
    },
  };
};
