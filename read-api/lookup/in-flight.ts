import { Counts } from '../../platform/counts.ts';
import type { KeptOut } from '../../platform/kept-out.ts';

/** The distinct addresses being looked up in this process. */
export interface InFlight {
  /** Returns null where the ceiling, or the asker's part of it, is reached; otherwise what to call when the lookup has ended. */
  enter(ip: string, asker: string): (() => void) | null;
}

interface Lookups {
  /** Who asked first: the address counts for its part. */
  readonly asker: string;
  count: number;
}

/**
 * Creates the count of addresses that are looked up. One asker may have all of the ceiling; while others were refused lately, it has
 * an equal part, because polls of one partner may wait for a second each and would leave no room.
 * @param keptOut askers that were refused
 */
export const createInFlight = (ceiling: number, keptOut: KeptOut): InFlight => {
  const running = new Map<string, Lookups>();
  const addressesOf = new Counts();

  const begin = (ip: string, asker: string): Lookups | null => {
    const part = Math.floor(ceiling / (1 + keptOut.wantedByOthers(asker).length));
    if (addressesOf.of(asker) >= Math.max(1, part)) return null;
    if (running.size >= ceiling) {
      keptOut.note(asker);
      return null;
    }
    const lookups = { asker, count: 0 };
    running.set(ip, lookups);
    addressesOf.add(asker, 1);
    return lookups;
  };

  const end = (ip: string, { asker }: Lookups): void => {
    running.delete(ip);
    addressesOf.add(asker, -1);
  };

  return {
    enter: (ip, asker) => {
      const lookups = running.get(ip) ?? begin(ip, asker);
      if (lookups === null) return null;
      lookups.count += 1;
      return () => {
        lookups.count -= 1;
        if (lookups.count === 0) end(ip, lookups);
      };
    },
  };
};
