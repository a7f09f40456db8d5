import { LRUCache } from 'lru-cache';
import type { Pool } from 'undici';

/** Pools of kept-alive connections, by partner and name. */
export interface KeptPools {
  find(partnerId: string, name: string): Pool | undefined;
  /** Keeps one more, and closes those that were used longest ago where there are too many. */
  add(partnerId: string, name: string, pool: Pool): void;
  close(): Promise<void>;
}

interface Most {
  readonly pools: number;
  readonly connections: number;
}

/** An idle pool takes 27 KB, and each of its TLS connections 80 to 143 KB more. */
const IN_ALL: Most = { pools: 500, connections: 2_048 };
/**
 * A name whose addresses are others each time has a pool for each attempt, which must not close those of other partners. As many
 * connections as a partner may have attempts at once.
 */
const OF_PARTNER: Most = { pools: 50, connections: 160 };

/** Creates an empty set of pools. Before one is added, the others are as many at most as these limits say. */
export const createKeptPools = (): KeptPools => {
  const pools = new LRUCache<string, Pool>({ max: IN_ALL.pools });

  const close = (key: string): void => {
    const pool = pools.peek(key);
    pools.delete(key);
    pool?.close().catch(() => undefined);
  };

  /** Closes as many as needed of these, the first of which was used longest ago. */
  const makeRoom = (keys: readonly string[], most: Most): void => {
    const open = keys.map((key) => pools.peek(key)?.stats.connected ?? 0);
    let connections = open.reduce((sum, count) => sum + count, 0);
    for (const [n, key] of keys.entries()) {
      if (keys.length - n < most.pools && connections <= most.connections) return;
      connections -= open[n] ?? 0;
      close(key);
    }
  };

  return {
    find: (partnerId, name) => pools.get(`${partnerId} ${name}`),
    add: (partnerId, name, pool) => {
      makeRoom(
        [...pools.rkeys()].filter((key) => key.startsWith(`${partnerId} `)),
        OF_PARTNER,
      );
      makeRoom([...pools.rkeys()], IN_ALL);
      pools.set(`${partnerId} ${name}`, pool);
    },
    close: async () => {
      const open = [...pools.values()];
      pools.clear();
      await Promise.all(open.map((pool) => pool.close()));
    },
  };
};
