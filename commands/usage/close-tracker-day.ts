import { readEvent } from '../../domain/kernel/events.ts';
import { type TrackerHour, trackerDayStream, usageEvents } from '../../domain/usage/events.ts';
import type { EventStore, NewEvent, RecordedEvent, Revision } from '../../event-store/port.ts';
import { conflictRetries } from '../conflicts.ts';
import { appendSafely, type CommandContext, toNewEvents } from '../handle.ts';

/** Rows in one event: about half of what one append may hold. */
const PART_ROWS = 5_000;

/** Of an event that opens a day again: a closing's parts are numbered from 1. */
const REOPENED_PART = 0;

/** Writes down what began in the hours of a day that is over (`YYYY-MM-DD`). Repeating it changes nothing. */
export const closeTrackerDay = async (
  store: EventStore,
  day: string,
  counts: readonly TrackerHour[],
  context: CommandContext,
): Promise<void> => {
  const stream = trackerDayStream(day);
  const parts = Math.max(1, Math.ceil(counts.length / PART_ROWS));
  let first: Revision = 0;
  for await (const stored of store.readStream(stream)) if (opensAgain(stored)) first = stored.revision + 1;
  for (let part = 1; part <= parts; part += 1) {
    const rows = counts.slice((part - 1) * PART_ROWS, part * PART_ROWS);
    const data = { day, part, parts, counts: rows };
    const events = toNewEvents(usageEvents, [{ type: 'usage.TrackerDayClosed.v1', data }], context);
    await writePart(store, stream, first + part - 1, events);
  }
};

/**
 * Opens a day again that was closed before it was over, by a clock that was ahead: its next closing replaces the one
 * before. Repeating it changes nothing.
 */
export const reopenTrackerDay = async (
  store: EventStore,
  day: string,
  context: CommandContext,
): Promise<void> => {
  const stream = trackerDayStream(day);
  for await (const last of store.readStream(stream, { direction: 'backwards', limit: 1 })) {
    if (opensAgain(last)) return;
    const data = { day, part: REOPENED_PART, parts: 1, counts: [] };
    const events = toNewEvents(usageEvents, [{ type: 'usage.TrackerDayClosed.v1', data }], context);
    await writePart(store, stream, last.revision + 1, events);
  }
};

const opensAgain = (stored: RecordedEvent): boolean => {
  const event = readEvent(usageEvents, stored);
  return event?.type === 'usage.TrackerDayClosed.v1' && event.data.part === REOPENED_PART;
};

/** Appends a part at its revision, unless an earlier run or another process has written it. */
const writePart = async (
  store: EventStore,
  stream: string,
  revision: Revision,
  events: readonly NewEvent[],
): Promise<void> => {
  const afterConflict = conflictRetries();
  for (;;) {
    try {
      await appendSafely(store, stream, revision === 0 ? 'no_stream' : revision - 1, events);
      return;
    } catch (error) {
      await afterConflict(error);
      // The refusal alone does not prove that the part is there: the refusing event may never be replicated.
      for await (const stored of store.readStream(stream, { from: revision, limit: 1 })) {
        if (stored.revision === revision) return;
      }
    }
  }
};
