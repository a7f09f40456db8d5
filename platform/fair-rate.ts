import type { KeptOut } from './kept-out.ts';
import type { Verdict } from './rate-limit.ts';

export interface FairRateOptions {
  readonly ceiling: number;
  /** Askers that were recently rejected by the full rate. */
  readonly keptOut: KeptOut;
  /** Consumes a rate of that name and ceiling. */
  readonly admit: (name: string, ceiling: number) => Verdict | Promise<Verdict>;
}

/** Admits one request of an asker; null admits, otherwise the wait in milliseconds. */
export type FairRate = (asker: string) => Promise<Verdict>;

/**
 * Shares a rate fairly. A single asker may use all of it; while others were recently rejected, each is limited to an equal
 * share, so that one key at its usual rate does not shut out the others.
 */
export const createFairRate =
  ({ ceiling, keptOut, admit }: FairRateOptions): FairRate =>
  async (asker) => {
    const part = Math.max(1, Math.floor(ceiling / (1 + keptOut.others(asker))));
    const beyondPart = await admit(`intake of ${asker}`, part);
    // The asker used up its own share, so others need not shrink theirs.
    if (beyondPart !== null) return beyondPart;
    const full = await admit('intake', ceiling);
    if (full !== null) keptOut.note(asker);
    return full;
  };
