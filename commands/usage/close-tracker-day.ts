import { type TrackerHour, trackerDayStream, usageEvents } from '../../domain/usage/events.ts';
import type { EventStore, NewEvent, Revision } from '../../event-store/port.ts';
import { conflictRetries } from '../conflicts.ts';
import { appendSafely, type CommandContext, toNewEvents } from '../handle.ts';

/** Rows in one event: about half of what one append may hold. */
const PART_ROWS = 5_000;

/** Writes down what began in the hours of a day that is over (`YYYY-MM-DD`). Repeating it changes nothing. */
export const closeTrackerDay = async (
  store: EventStore,
  day: string,
  counts: readonly TrackerHour[],
  context: CommandContext,
): Promise<void> => {
  const parts = Math.max(1, Math.ceil(counts.length / PART_ROWS));
  for (let part = 1; part <= parts; part += 1) {
    const rows = counts.slice((part - 1) * PART_ROWS, part * PART_ROWS);
    const data = { day, part, parts, counts: rows };
    const events = toNewEvents(usageEvents, [{ type: 'usage.TrackerDayClosed.v1', data }], context);
    await writePart(store, trackerDayStream(day), part - 1, events);
  }
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
