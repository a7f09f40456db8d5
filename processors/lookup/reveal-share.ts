import { LRUCache } from 'lru-cache';
import type pg from 'pg';

/** As many as lookups of one partner may be pending: a tenth of the outstanding work of all. */
const SHARE = 10_000;
const COUNTED_MS = 5_000;
const CACHED = 1_000;

/**
 * Limits how many of a partner's reveals wait for an enrichment that was requested, so that one partner's do not fill the
 * outstanding work of all. Counts again when the count is used up or some seconds old: exact enough for a share.
 */
export const createRevealShare = (pool: pg.Pool): ((partnerId: string) => Promise<boolean>) => {
  const left = new LRUCache<string, number>({ max: CACHED, ttl: COUNTED_MS, noUpdateTTL: true });

  const count = async (partnerId: string): Promise<number> => {
    const { rows } = await pool.query<{ asked: number }>({
      name: 'reveals_asked',
      text: `select count(*)::int as asked from (
               select from work.awaited_result where partner_id = $1 and asked and not ready limit $2) waiting`,
      values: [partnerId, SHARE],
    });
    return SHARE - (rows[0]?.asked ?? 0);
  };

  return async (partnerId) => {
    const room = left.get(partnerId) ?? (await count(partnerId));
    left.set(partnerId, Math.max(0, room - 1));
    return room > 0;
  };
};
