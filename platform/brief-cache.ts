import { LRUCache } from 'lru-cache';

export interface BriefCache<T> {
  find(key: string): T | Promise<T>;
  /** To be called once a change is in the read model. */
  forget(key: string): void;
}

/** With the projection's delay on top, a change holds everywhere within a second (architecture, rule 12). */
const TRUSTED_MS = 400;
/** Older answers are not used, and one may have 13 KB: a tracker with 50 long origins, of which a partner may have made thousands. */
const CACHED = 1_000;

/**
 * Caches an answer for less than half a second; concurrent callers share one question. lru-cache's own `fetch` would return a
 * promise for a cached answer too, which every request would wait for.
 */
export const createBriefCache = <T>(ask: (key: string) => Promise<T>): BriefCache<T> => {
  const answers = new LRUCache<string, { readonly answer: T; readonly askedAt: number }>({ max: CACHED });
  const asking = new Map<string, Promise<T>>();

  const askNow = (key: string): Promise<T> => {
    const askedAt = performance.now();
    const asked = ask(key)
      .then((answer) => {
        // What was forgotten meanwhile may have been asked before it changed.
        if (asking.get(key) === asked) answers.set(key, { answer, askedAt });
        return answer;
      })
      .finally(() => {
        if (asking.get(key) === asked) asking.delete(key);
      });
    asking.set(key, asked);
    return asked;
  };

  return {
    find: (key: string): T | Promise<T> => {
      const known = answers.get(key);
      if (known && performance.now() - known.askedAt < TRUSTED_MS) return known.answer;
      return asking.get(key) ?? askNow(key);
    },
    forget: (key: string): void => {
      answers.delete(key);
      asking.delete(key);
    },
  };
};
