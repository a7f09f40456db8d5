import { shareNext } from './share-next.ts';

/**
 * Coalesces reads: the keys that are asked for during a read are read together by the next one, so that callers without a name, who may
 * ask for any number of things that do not exist, take one connection of the pool and not all.
 * @param read returns what it finds, by key
 */
export const readTogether = <T>(
  read: (keys: readonly string[]) => Promise<ReadonlyMap<string, T>>,
): ((key: string) => Promise<T | null>) => {
  let keys: string[] = [];
  const readAll = shareNext(() => {
    const these = keys;
    keys = [];
    return read(these);
  });
  return async (key) => {
    keys.push(key);
    return (await readAll()).get(key) ?? null;
  };
};
