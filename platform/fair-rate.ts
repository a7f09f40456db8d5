import type { Verdict } from './rate-limit.ts';

export interface FairRateOptions {
  /** What the rate of all askers together admits. */
  readonly ceiling: number;
  /** How long an asker that found it full has others keep to their part. */
  readonly windowMs: number;
  /** Spends a rate of that name and ceiling. */
  readonly admit: (name: string, ceiling: number) => Verdict | Promise<Verdict>;
  /** Milliseconds. */
  readonly now: () => number;
}

/** Admits one thing of an asker; null admits, else the milliseconds to wait. */
export type FairRate = (asker: string) => Promise<Verdict>;

/**
 * Shares a rate among those who ask for it. One alone may take all of it. While others have found it full within
 * `windowMs`, each may take its part only, so that one key at its usual rate does not keep everybody else out.
 */
export const createFairRate = ({ ceiling, windowMs, admit, now }: FairRateOptions): FairRate => {
  /** When the rate was full for an asker. */
  const keptOut = new Map<string, number>();

  const othersKeptOut = (asker: string): number => {
    const since = now() - windowMs;
    for (const [name, at] of keptOut) if (at <= since) keptOut.delete(name);
    return keptOut.size - (keptOut.has(asker) ? 1 : 0);
  };

  return async (asker) => {
    const part = Math.max(1, Math.floor(ceiling / (1 + othersKeptOut(asker))));
    const beyondPart = await admit(`intake of ${asker}`, part);
    // It has had its part: no reason for others to have less.
    if (beyondPart !== null) return beyondPart;
    const full = await admit('intake', ceiling);
    if (full !== null) keptOut.set(asker, now());
    return full;
  };
};
