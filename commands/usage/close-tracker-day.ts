import { type TrackerHour, trackerDayStream, usageEvents } from '../../domain/usage/events.ts';
import { type EventStore, WrongExpectedRevision } from '../../event-store/port.ts';
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
    const expected = part === 1 ? 'no_stream' : part - 2;
    try {
      await appendSafely(store, trackerDayStream(day), expected, events);
    } catch (error) {
      // An earlier run, or another process, has written this part.
      if (!(error instanceof WrongExpectedRevision)) throw error;
    }
  }
};
