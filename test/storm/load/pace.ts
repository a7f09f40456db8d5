import { setTimeout as pause } from 'node:timers/promises';

/** The rate of a client's actions. */
export interface Pace {
  readonly perSecond: number;
  /** A start is skipped at this number of unfinished ones. */
  readonly maxConcurrent: number;
}

/**
 * Runs `step` at a steady rate, whatever the service does.
 * @returns stops it, and resolves when all steps have ended
 * @throws the returned function: the error of the first step that failed
 */
export const repeatAtPace = ({ perSecond, maxConcurrent }: Pace, step: () => Promise<void>) => {
  const underWay = new Set<Promise<void>>();
  const failures: unknown[] = [];
  const stopping = new AbortController();
  const loop = (async () => {
    const begun = performance.now();
    for (let n = 1; !stopping.signal.aborted; n += 1) {
      if (underWay.size < maxConcurrent) {
        const run: Promise<void> = step()
          .catch((error: unknown) => void failures.push(error))
          .finally(() => underWay.delete(run));
        underWay.add(run);
      }
      const due = begun + (n * 1_000) / perSecond - performance.now();
      await pause(Math.max(0, due), undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  })();
  return async (): Promise<void> => {
    stopping.abort();
    await loop;
    await Promise.all(underWay);
    if (failures.length > 0) throw failures[0];
  };
};
