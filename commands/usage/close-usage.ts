import { inChunks } from '../../domain/kernel/chunks.ts';
import { accept, type Decider, unreachable } from '../../domain/kernel/decider.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import {
  callsKey,
  type LookupCount,
  lookupKey,
  negated,
  negatedCalls,
  plus,
  plusCalls,
  type TrackerCalls,
  type TrackerHour,
  trackerDayStream,
  type UsageEvent,
  usageEvents,
} from '../../domain/usage/events.ts';
import type { EventStore, RecordedEvent, Revision } from '../../event-store/port.ts';
import { throttled } from '../../platform/clock/waiting.ts';
import {
  type Aggregate,
  appendSafely,
  type CommandContext,
  conflictRetries,
  evolveStored,
  type Loaded,
  load,
  toNewEvents,
} from '../handle.ts';

/** Sums by key, hour and outcome, or by tracker and hour, and the number of written parts. */
interface UsageTotals {
  readonly counts: ReadonlyMap<string, LookupCount>;
  readonly calls: ReadonlyMap<string, TrackerCalls>;
  readonly partsWritten: number;
}

type UsageCommand = { readonly type: 'Total' };

/** Rows per event: about half of what one append may hold. */
const PART_ROWS = 5_000;

/** Splits rows into pages ordered by key, without rows that corrections have reduced to zero. */
function pages<Row extends LookupCount | TrackerCalls>(rows: ReadonlyMap<string, Row>): Row[][] {
  const sorted = [...rows]
    .filter(([, row]) => row.some((sum) => typeof sum === 'number' && sum !== 0))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, row]) => row);
  return inChunks(sorted, PART_ROWS);
}

function parts(state: UsageTotals): UsageEvent[] {
  const lookups = pages(state.counts);
  const calls = pages(state.calls);
  const numbered = { parts: lookups.length + calls.length };
  return [
    ...lookups.map((counts, index): UsageEvent => {
      const data = { part: index + 1, ...numbered, counts };
      return { type: 'usage.LookupsTotalled.v1', data };
    }),
    ...calls.map((counts, index): UsageEvent => {
      const data = { part: lookups.length + index + 1, ...numbered, counts };
      return { type: 'usage.TrackerCallsTotalled.v1', data };
    }),
  ];
}

/** Adds rows to the sums of their keys. */
function addTo<Row>(
  sums: Map<string, Row>,
  keyOf: (row: Row) => string,
  plus: (sum: Row | undefined, row: Row) => Row,
  rows: readonly Row[],
): void {
  for (const row of rows) sums.set(keyOf(row), plus(sums.get(keyOf(row)), row));
}

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
        addTo(counts, lookupKey, plus, data.counts);
        return { ...state, partsWritten: 0 };
      case 'usage.LookupsCorrected.v1':
        addTo(counts, lookupKey, plus, data.counts.map(negated));
        return { ...state, partsWritten: 0 };
      case 'usage.LookupsTotalled.v1':
        for (const row of data.counts) counts.set(lookupKey(row), row);
        return { ...state, partsWritten: data.part };
      case 'usage.TrackerCallsCounted.v1':
        addTo(calls, callsKey, plusCalls, data.counts);
        return { ...state, partsWritten: 0 };
      case 'usage.TrackerCallsCorrected.v1':
        addTo(calls, callsKey, plusCalls, data.counts.map(negatedCalls));
        return { ...state, partsWritten: 0 };
      case 'usage.TrackerCallsTotalled.v1':
        for (const row of data.counts) calls.set(callsKey(row), row);
        return { ...state, partsWritten: data.part };
      case 'usage.TrackerDayClosed.v1':
        return state;
      default:
        return unreachable(type);
    }
  },
};

const aggregate: Aggregate<UsageTotals, UsageCommand, UsageEvent, never> = {
  schemas: usageEvents,
  decider: usageTotalsDecider,
};

/**
 * Appends totals to a usage stream of a past day, part by part because together they may exceed an append, and truncates the
 * counts before them. Reads the stream once, since it may have millions of events. Idempotent, also after a crash.
 */
export async function totalUsage(store: EventStore, stream: string, context: CommandContext): Promise<void> {
  const afterConflict = conflictRetries();
  let known: Loaded<UsageTotals> = { state: usageTotalsDecider.initial, revision: null };
  for await (const stored of throttled(store.readStream(stream))) {
    known = evolveStored(aggregate, known, stored);
  }
  for (;;) {
    const decision = usageTotalsDecider.decide({ type: 'Total' }, known.state);
    if (!decision.ok || decision.value.length === 0) break;
    try {
      for (const part of decision.value) {
        const events = toNewEvents(usageEvents, [part], context);
        const { revision } = await appendSafely(store, stream, known.revision ?? 'no_stream', events);
        known = { state: usageTotalsDecider.evolve(known.state, part), revision };
      }
    } catch (error) {
      await afterConflict(error);
      known = await load(store, aggregate, stream, known);
    }
  }
  const { state, revision } = known;
  if (revision !== null) await store.truncateBefore(stream, revision - state.partsWritten + 1);
}

/** Marks an event that reopens the day; the parts of a closing are numbered from 1. */
const REOPENED_PART = 0;

/** Records the counts of a past day (`YYYY-MM-DD`). Idempotent. */
export async function closeTrackerDay(
  store: EventStore,
  day: string,
  counts: readonly TrackerHour[],
  context: CommandContext,
): Promise<void> {
  const stream = trackerDayStream(day);
  let first: Revision = 0;
  for await (const stored of store.readStream(stream)) if (isReopening(stored)) first = stored.revision + 1;
  const parts = counts.length === 0 ? [[]] : inChunks(counts, PART_ROWS);
  for (const [index, rows] of parts.entries()) {
    const data = { day, part: index + 1, parts: parts.length, counts: rows };
    await writePart(store, stream, first + index, data, context);
  }
}

/** Reopens a day that a fast clock closed too early; the next closing replaces its counts. Idempotent. */
export async function reopenTrackerDay(
  store: EventStore,
  day: string,
  context: CommandContext,
): Promise<void> {
  const stream = trackerDayStream(day);
  for await (const last of store.readStream(stream, { direction: 'backwards', limit: 1 })) {
    if (isReopening(last)) return;
    const data = { day, part: REOPENED_PART, parts: 1, counts: [] };
    await writePart(store, stream, last.revision + 1, data, context);
  }
}

function isReopening(stored: RecordedEvent): boolean {
  const event = readEvent(usageEvents, stored);
  return event?.type === 'usage.TrackerDayClosed.v1' && event.data.part === REOPENED_PART;
}

/** Appends a part at its revision, unless it is already written. */
async function writePart(
  store: EventStore,
  stream: string,
  revision: Revision,
  data: Extract<UsageEvent, { type: 'usage.TrackerDayClosed.v1' }>['data'],
  context: CommandContext,
): Promise<void> {
  const events = toNewEvents(usageEvents, [{ type: 'usage.TrackerDayClosed.v1', data }], context);
  const afterConflict = conflictRetries();
  for (;;) {
    try {
      await appendSafely(store, stream, revision === 0 ? 'no_stream' : revision - 1, events);
      return;
    } catch (error) {
      await afterConflict(error);
      // A conflict alone does not prove that the part is stored: the conflicting event may never be replicated.
      for await (const stored of store.readStream(stream, { from: revision, limit: 1 })) {
        if (stored.revision === revision) return;
      }
    }
  }
}
