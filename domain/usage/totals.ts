import { inChunks } from '../kernel/chunks.ts';
import { accept, type Decider, unreachable } from '../kernel/decider.ts';
import {
  type LookupCount,
  negated,
  negatedCalls,
  plus,
  plusCalls,
  type TrackerCalls,
  type UsageEvent,
} from './events.ts';

/** Sums by key, hour and outcome, or by tracker and hour, and the number of written parts. */
export interface UsageTotals {
  readonly counts: ReadonlyMap<string, LookupCount>;
  readonly calls: ReadonlyMap<string, TrackerCalls>;
  readonly partsWritten: number;
}

export type UsageCommand = { readonly type: 'Total' };

/** Rows per event: about half of what one append may hold. */
const PART_ROWS = 5_000;

const keyOf = ([key, hour, outcome]: LookupCount): string => `${key} ${hour} ${outcome}`;
const keyOfCalls = ([tracker, hour]: TrackerCalls): string => `${tracker} ${hour}`;

/** Splits rows into pages ordered by key, without rows that corrections have reduced to zero. */
const pages = <Row extends LookupCount | TrackerCalls>(rows: ReadonlyMap<string, Row>): Row[][] => {
  const sorted = [...rows]
    .filter(([, row]) => row.some((sum) => typeof sum === 'number' && sum !== 0))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, row]) => row);
  return inChunks(sorted, PART_ROWS);
};

const parts = (state: UsageTotals): UsageEvent[] => {
  const lookups = pages(state.counts);
  const calls = pages(state.calls);
  const all = lookups.length + calls.length;
  return [
    ...lookups.map(
      (counts, index): UsageEvent => ({
        type: 'usage.LookupsTotalled.v1',
        data: { part: index + 1, parts: all, counts },
      }),
    ),
    ...calls.map(
      (counts, index): UsageEvent => ({
        type: 'usage.TrackerCallsTotalled.v1',
        data: { part: lookups.length + index + 1, parts: all, counts },
      }),
    ),
  ];
};

/** Decides the totals of a usage stream: the parts that are not written yet, which together may exceed an append. */
export const usageTotalsDecider: Decider<UsageTotals, UsageCommand, UsageEvent, never> = {
  get initial(): UsageTotals {
    return { counts: new Map(), calls: new Map(), partsWritten: 0 };
  },

  decide: (_command, state) => accept(parts(state).slice(state.partsWritten)),

  evolve(state, { type, data }) {
    const counts = state.counts as Map<string, LookupCount>;
    const calls = state.calls as Map<string, TrackerCalls>;
    switch (type) {
      case 'usage.LookupsCounted.v1':
        for (const row of data.counts) counts.set(keyOf(row), plus(counts.get(keyOf(row)), row));
        return { ...state, partsWritten: 0 };
      case 'usage.LookupsCorrected.v1':
        for (const row of data.counts) counts.set(keyOf(row), plus(counts.get(keyOf(row)), negated(row)));
        return { ...state, partsWritten: 0 };
      case 'usage.LookupsTotalled.v1':
        for (const row of data.counts) counts.set(keyOf(row), row);
        return { ...state, partsWritten: data.part };
      case 'usage.TrackerCallsCounted.v1':
        for (const row of data.counts) calls.set(keyOfCalls(row), plusCalls(calls.get(keyOfCalls(row)), row));
        return { ...state, partsWritten: 0 };
      case 'usage.TrackerCallsCorrected.v1':
        for (const row of data.counts) {
          calls.set(keyOfCalls(row), plusCalls(calls.get(keyOfCalls(row)), negatedCalls(row)));
        }
        return { ...state, partsWritten: 0 };
      case 'usage.TrackerCallsTotalled.v1':
        for (const row of data.counts) calls.set(keyOfCalls(row), row);
        return { ...state, partsWritten: data.part };
      case 'usage.TrackerDayClosed.v1':
        return state;
      default:
        return unreachable(type);
    }
  },
};
