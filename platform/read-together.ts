import { shareNext } from './share-next.ts';

/** A read on a connection that the network has dropped must not hold up those after it. */
const PATIENCE_MS = 250;

/**
 * Coalesces reads: the keys that are asked for during a read are read together by the next one, so that callers without a name, who may
 * ask for any number of things that do not exist, take one connection of the pool and not all.
 * @param read returns what it finds, by key
 */
export const readTogether = <T>(
  read: (keys: readonly string[]) => Promise<ReadonlyMap<string, T>>,
): ((key: string) => Promise<T | null>) => {
  let keys: string[] = [];
  const readNext = (): Promise<ReadonlyMap<string, T>> => {
    const these = keys;
    keys = [];
    return read(these);
  };
  const readAll = shareNext(readNext, 0, PATIENCE_MS);
  return async (key) => {
    keys.push(key);
    return (await readAll()).get(key) ?? null;
  };
};
