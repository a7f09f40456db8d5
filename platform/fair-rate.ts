import type { KeptOut } from './kept-out.ts';
import type { Verdict } from './rate-limit.ts';

export interface FairRateOptions {
  readonly ceiling: number;
  /** Askers that were recently rejected by the full rate. */
  readonly keptOut: KeptOut;
  /** Consumes a rate of that name and ceiling. */
  readonly admit: (name: string, ceiling: number) => Verdict | Promise<Verdict>;
}

/**
 * Admits one request of an asker; null admits, otherwise the wait in milliseconds.
 * @param wanted what others leave it of the rate if it is full. Default: as much as they have themselves; null: nothing
 */
export type FairRate = (asker: string, wanted?: number | null) => Promise<Verdict>;

/**
 * Returns an asker's part of a rate: the others have what they want, but no more than an equal part (max-min fairness).
 * @param wanted what each of the others wants
 */
export const fairPart = (ceiling: number, wanted: readonly number[]): number =>
  Math.max(1, Math.floor(fairLevel(ceiling, [...wanted, Number.POSITIVE_INFINITY])));

/** Returns up to how much each has what it wants of a rate (max-min fairness); infinity: all of them have it. */
export const fairLevel = (ceiling: number, wanted: readonly number[]): number => {
  let left = ceiling;
  let sharing = wanted.length;
  for (const one of wanted.toSorted((a, b) => a - b)) {
    if (one >= left / sharing) return left / sharing;
    left -= one;
    sharing -= 1;
  }
  return Number.POSITIVE_INFINITY;
};

/** Part of what small askers leave that is room for them at most: the others would lose more by it than those win. */
const MOST_ROOM = 0.1;

/**
 * Returns room beside those that want less than an equal part, for as much as their sum deviates: its root, as visits are independent.
 * Those that want more are limited, and need none.
 * @param sharing how many have equal parts
 */
export const roomBesideSmall = (ceiling: number, sharing: number, wanted: readonly number[]): number => {
  const ofSmall = wanted.reduce((sum, one) => (one < ceiling / sharing ? sum + one : sum), 0);
  return Math.min(Math.sqrt(ofSmall), MOST_ROOM * Math.max(0, ceiling - ofSmall));
};

/**
 * Shares a rate fairly. A single asker may use all of it; while others were recently rejected, each is limited to its part, so
 * that one key at its usual rate does not shut out the others.
 */
export const createFairRate =
  ({ ceiling, keptOut, admit }: FairRateOptions): FairRate =>
  async (asker, wanted) => {
    const part = fairPart(ceiling, keptOut.wantedByOthers(asker));
    const beyondPart = await admit(`intake of ${asker}`, part);
    // The asker used up its own share, so others need not shrink theirs.
    if (beyondPart !== null) return beyondPart;
    const full = await admit('intake', ceiling);
    if (full !== null && wanted !== null) keptOut.note(asker, wanted);
    return full;
  };
