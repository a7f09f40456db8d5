import { readEvent } from '../../domain/kernel/events.ts';
import { type TrackerHour, trackerDayStream, usageEvents } from '../../domain/usage/events.ts';
import type { EventStore, NewEvent, RecordedEvent, Revision } from '../../event-store/port.ts';
import { conflictRetries } from '../conflicts.ts';
import { appendSafely, type CommandContext, toNewEvents } from '../handle.ts';

/** Rows per event: about half of what one append may hold. */
const PART_ROWS = 5_000;

/** Marks an event that reopens the day; the parts of a closing are numbered from 1. */
const REOPENED_PART = 0;

/** Records the counts of a past day (`YYYY-MM-DD`). Idempotent. */
export const closeTrackerDay = async (
  store: EventStore,
  day: string,
  counts: readonly TrackerHour[],
  context: CommandContext,
): Promise<void> => {
  const stream = trackerDayStream(day);
  const parts = Math.max(1, Math.ceil(counts.length / PART_ROWS));
  let first: Revision = 0;
  for await (const stored of store.readStream(stream)) if (isReopening(stored)) first = stored.revision + 1;
  for (let part = 1; part <= parts; part += 1) {
    const rows = counts.slice((part - 1) * PART_ROWS, part * PART_ROWS);
    const data = { day, part, parts, counts: rows };
    const events = toNewEvents(usageEvents, [{ type: 'usage.TrackerDayClosed.v1', data }], context);
    await writePart(store, stream, first + part - 1, events);
  }
};

/** Reopens a day that a fast clock closed too early; the next closing replaces its counts. Idempotent. */
export const reopenTrackerDay = async (
  store: EventStore,
  day: string,
  context: CommandContext,
): Promise<void> => {
  const stream = trackerDayStream(day);
  for await (const last of store.readStream(stream, { direction: 'backwards', limit: 1 })) {
    if (isReopening(last)) return;
    const data = { day, part: REOPENED_PART, parts: 1, counts: [] };
    const events = toNewEvents(usageEvents, [{ type: 'usage.TrackerDayClosed.v1', data }], context);
    await writePart(store, stream, last.revision + 1, events);
  }
};

const isReopening = (stored: RecordedEvent): boolean => {
  const event = readEvent(usageEvents, stored);
  return event?.type === 'usage.TrackerDayClosed.v1' && event.data.part === REOPENED_PART;
};

/** Appends a part at its revision, unless it is already written. */
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
      // A conflict alone does not prove that the part is stored: the conflicting event may never be replicated.
      for await (const stored of store.readStream(stream, { from: revision, limit: 1 })) {
        if (stored.revision === revision) return;
      }
    }
  }
};
