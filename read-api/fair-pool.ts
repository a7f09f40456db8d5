import type { DatabasePool } from 'slonik';
import { BackendTimeout } from '../http/failures.ts';
import { servedPartner } from '../http/on-behalf-of.ts';

export interface FairShare {
  /** Queries of one partner at once. */
  readonly atOnce: number;
  /** Queries of one partner that may wait for those. */
  readonly waiting: number;
  /** How long, in milliseconds. */
  readonly waitMs: number;
}

/**
 * Half of the pool (`platform/slonik.ts`). A hundred reveals of one partner in a moment are usual, and a caller waits no
 * longer than a request may take.
 */
const SHARE: FairShare = { atOnce: 2, waiting: 1_000, waitMs: 4_000 };

interface Lane {
  running: number;
  readonly waiting: Set<() => void>;
}

/**
 * Limits how many queries each partner has under way, so that one with a long history does not keep all connections
 * busy. Work that is for no partner is not limited.
 */
export const fairPool = (db: DatabasePool, share: FairShare = SHARE): DatabasePool => {
  const lanes = new Map<string, Lane>();

  const leave = (partnerId: string, lane: Lane): void => {
    const [next] = lane.waiting;
    if (next) {
      lane.waiting.delete(next);
      next();
      return;
    }
    lane.running -= 1;
    if (lane.running === 0) lanes.delete(partnerId);
  };

  /** @throws BackendTimeout */
  const enter = (partnerId: string): Lane | Promise<Lane> => {
    const lane = lanes.get(partnerId) ?? { running: 0, waiting: new Set() };
    lanes.set(partnerId, lane);
    if (lane.running < share.atOnce) {
      lane.running += 1;
      return lane;
    }
    if (lane.waiting.size >= share.waiting) throw new BackendTimeout('too many queries of the partner wait');
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        clearTimeout(timer);
        resolve(lane);
      };
      const giveUp = (): void => {
        lane.waiting.delete(begin);
        reject(new BackendTimeout('other queries of the partner take too long'));
      };
      const timer = setTimeout(giveUp, share.waitMs);
      lane.waiting.add(begin);
    });
  };

  const limited =
    <Args extends unknown[], Result>(query: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      const partnerId = servedPartner();
      if (partnerId === undefined) return query(...args);
      const lane = await enter(partnerId);
      try {
        return await query(...args);
      } finally {
        leave(partnerId, lane);
      }
    };

  return {
    ...db,
    any: limited(db.any) as DatabasePool['any'],
    maybeOne: limited(db.maybeOne) as DatabasePool['maybeOne'],
    maybeOneFirst: limited(db.maybeOneFirst) as DatabasePool['maybeOneFirst'],
    one: limited(db.one) as DatabasePool['one'],
    oneFirst: limited(db.oneFirst) as DatabasePool['oneFirst'],
  };
};
