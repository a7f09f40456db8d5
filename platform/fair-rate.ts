import type { KeptOut } from './kept-out.ts';
import type { Verdict } from './rate-limit.ts';

export interface FairRateOptions {
  /** What the rate of all askers together admits. */
  readonly ceiling: number;
  /** For whom it was full lately. */
  readonly keptOut: KeptOut;
  /** Spends a rate of that name and ceiling. */
  readonly admit: (name: string, ceiling: number) => Verdict | Promise<Verdict>;
}

/** Admits one thing of an asker; null admits, else the milliseconds to wait. */
export type FairRate = (asker: string) => Promise<Verdict>;

/**
 * Shares a rate among those who ask for it. One alone may take all of it. While others have found it full lately, each
 * may take its part only, so that one key at its usual rate does not keep everybody else out.
 */
export const createFairRate =
  ({ ceiling, keptOut, admit }: FairRateOptions): FairRate =>
  async (asker) => {
    const part = Math.max(1, Math.floor(ceiling / (1 + keptOut.others(asker))));
    const beyondPart = await admit(`intake of ${asker}`, part);
    // It has had its part: no reason for others to have less.
    if (beyondPart !== null) return beyondPart;
    const full = await admit('intake', ceiling);
    if (full !== null) keptOut.note(asker);
    return full;
  };
