import DataLoader from 'dataloader';
import { LRUCache } from 'lru-cache';
import { endsWithin } from '../clock/waiting.ts';

/** How reads that many requests ask for at the same moment become few statements: batches (dataloader) and a short cache (lru-cache). */

/** A batch on a connection that the network has dropped must not hold up those after it. */
const MAX_WAIT_MS = 250;

/**
 * Collects the keys that are asked for while a batch is under way into the next one, so that callers without a name, who may ask for
 * any number of things that do not exist, take one connection of the pool and not all.
 * @param load returns a value or an error for each key, in their order
 */
export function batchLoader<Key, Value>(
  load: (keys: readonly Key[]) => Promise<readonly (Value | Error)[]>,
): (key: Key) => Promise<Value> {
  let running: Promise<unknown> = Promise.resolve();
  const loader = new DataLoader<Key, Value>(
    (keys) => {
      const loaded = load(keys);
      running = endsWithin(
        loaded.catch(() => null),
        MAX_WAIT_MS,
      );
      return loaded;
    },
    { cache: false, batchScheduleFn: (dispatch) => void running.then(dispatch) },
  );
  return (key) => loader.load(key);
}

/** The same for a read that returns what it finds by key; null: not found. */
export function rowLoader<Row>(
  read: (keys: readonly string[]) => Promise<ReadonlyMap<string, Row>>,
): (key: string) => Promise<Row | null> {
  return batchLoader(async (keys) => {
    const found = await read([...new Set(keys)]);
    return keys.map((key) => found.get(key) ?? null);
  });
}

export interface ShortCache<Value> {
  /** Not a promise when the answer is cached: every request would wait for it. */
  find(key: string): Value | Promise<Value>;
  /** To be called once a change is in the read model. */
  forget(key: string): void;
}

/** With the projection's delay on top, a change holds everywhere within a second (architecture, rule 12). */
const TTL_MS = 400;

/**
 * Caches answers for less than half a second since they were asked for; concurrent callers share one load.
 * @param isCached whether an answer may be cached; default: every answer
 */
export function shortCache<Value>(
  load: (key: string) => Promise<Value>,
  { max, isCached = () => true }: { readonly max: number; readonly isCached?: (value: Value) => boolean },
): ShortCache<Value> {
  const answers = new LRUCache<string, { readonly value: Value }>({
    max,
    ttl: TTL_MS,
    ttlResolution: 0,
    // An answer that was forgotten while it was loaded reaches its callers and is not cached.
    ignoreFetchAbort: true,
    fetchMethod: async (key, _stale, { options }) => {
      const askedAt = performance.now();
      const value = await load(key);
      const ttl = isCached(value) ? TTL_MS - (performance.now() - askedAt) : 0;
      options.ttl = Math.max(Number.MIN_VALUE, ttl);
      return { value };
    },
  });
  return {
    find: (key) => {
      const known = answers.get(key);
      return known === undefined ? answers.forceFetch(key).then(({ value }) => value) : known.value;
    },
    forget: (key) => void answers.delete(key),
  };
}
