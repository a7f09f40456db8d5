import { accept, type Decider, unreachable } from '../kernel/decider.ts';
import { type LookupCount, plus, type UsageEvent } from './events.ts';

/** Sums by key, hour and outcome, and how far the closing of the stream has come. */
export interface UsageTotals {
  readonly counts: ReadonlyMap<string, LookupCount>;
  readonly partsWritten: number;
}

export type UsageCommand = { readonly type: 'Total' };

/** Rows in one closing event: about half of what one append may hold. */
const PART_ROWS = 5_000;

const keyOf = ([key, hour, outcome]: LookupCount): string => `${key} ${hour} ${outcome}`;

const parts = (state: UsageTotals): UsageEvent[] => {
  const rows = [...state.counts.values()].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  const total = Math.ceil(rows.length / PART_ROWS);
  return Array.from({ length: total }, (_, index) => ({
    type: 'usage.LookupsTotalled.v1',
    data: {
      part: index + 1,
      parts: total,
      counts: rows.slice(index * PART_ROWS, (index + 1) * PART_ROWS),
    },
  }));
};

/**
 * Closes the books of a usage stream: totals that stand for the whole, so that the rest may go. One part a
 * command, as all of them may be more than one append can hold.
 */
export const usageTotals: Decider<UsageTotals, UsageCommand, UsageEvent, never> = {
  get initial(): UsageTotals {
    return { counts: new Map(), partsWritten: 0 };
  },

  decide: (_command, state) => accept(parts(state).slice(state.partsWritten, state.partsWritten + 1)),

  evolve(state, { type, data }) {
    const counts = state.counts as Map<string, LookupCount>;
    switch (type) {
      case 'usage.LookupsCounted.v1':
        for (const row of data.counts) counts.set(keyOf(row), plus(counts.get(keyOf(row)), row));
        return { ...state, partsWritten: 0 };
      case 'usage.LookupsTotalled.v1':
        for (const row of data.counts) counts.set(keyOf(row), row);
        return { ...state, partsWritten: data.part };
      default:
        return unreachable(type);
    }
  },
};
