import { LRUCache } from 'lru-cache';
import type { Pool } from 'undici';

/** Pools of kept-alive connections, by partner and name. */
export interface KeptPools {
  find(partnerId: string, name: string): Pool | undefined;
  /** Keeps one more, and closes the one that was used longest ago where there are too many. */
  add(partnerId: string, name: string, pool: Pool): void;
  close(): Promise<void>;
}

/** An idle pool takes 27 KB, and its TLS connection 143 KB more. */
const MAX_POOLS = 500;
/** A name whose addresses are others each time has a pool for each attempt, which must not close those of other partners. */
const MAX_POOLS_OF_PARTNER = 50;

/** Creates an empty set of pools: at most 500, and at most 50 of a partner. */
export const createKeptPools = (): KeptPools => {
  const closeQuietly = (pool: Pool): void => void pool.close().catch(() => undefined);
  const pools = new LRUCache<string, Pool>({
    max: MAX_POOLS,
    dispose: (pool, _key, why) => {
      if (why === 'evict') closeQuietly(pool);
    },
  });

  const makeRoom = (partnerId: string): void => {
    const own = [...pools.rkeys()].filter((key) => key.startsWith(`${partnerId} `));
    const [oldest] = own;
    if (oldest === undefined || own.length < MAX_POOLS_OF_PARTNER) return;
    const pool = pools.peek(oldest);
    pools.delete(oldest);
    if (pool) closeQuietly(pool);
  };

  return {
    find: (partnerId, name) => pools.get(`${partnerId} ${name}`),
    add: (partnerId, name, pool) => {
      makeRoom(partnerId);
      pools.set(`${partnerId} ${name}`, pool);
    },
    close: async () => {
      const open = [...pools.values()];
      pools.clear();
      await Promise.all(open.map((pool) => pool.close()));
    },
  };
};
