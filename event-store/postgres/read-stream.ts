import { isHidden } from '../hidden.ts';
import type { EventStore, Position, ReadOptions, RecordedEvent } from '../port.ts';
import { createPages, PAGE, type Query } from './pages.ts';
import { COLUMNS, toRecordedEvent } from './rows.ts';

/** Creates the reader of streams, page by page. `now`: milliseconds since the epoch, for expiry. */
export const createStreamReader = (query: Query, now: () => number): EventStore['readStream'] => {
  const pageOf = createPages(query);

  const readAlone = (stream: string, backwards: boolean, from: number, size: number) =>
    query(
      backwards ? 'read_backwards' : 'read_forwards',
      `select ${COLUMNS} from eventlog.event e join eventlog.stream s on s.name = e.stream
       where e.stream = $1 and not s.expired and e.revision >= s.truncated_before
         and e.revision ${backwards ? '<=' : '>='} $2
       order by e.revision ${backwards ? 'desc' : 'asc'} limit $3`,
      [stream, from, size],
    );

  return async function* readStream(stream: string, read: ReadOptions = {}): AsyncGenerator<RecordedEvent> {
    const backwards = read.direction === 'backwards';
    let from = read.from ?? (backwards ? 2 ** 31 - 1 : 0);
    let left = read.limit ?? Number.POSITIVE_INFINITY;
    let size = Math.min(left, PAGE);
    while (left > 0) {
      // A read with a limit needs few rows, so it does not share a statement; backward reads never do.
      const alone = backwards || read.limit !== undefined;
      const rows = await (alone ? readAlone(stream, backwards, from, size) : pageOf(stream, from));
      if (rows === null) {
        read.onExpired?.();
        return;
      }
      const instant = now();
      for (const event of rows.map(toRecordedEvent)) {
        from = event.revision + (backwards ? -1 : 1);
        if (!read.includeExpired && isHidden(event, instant)) continue;
        left -= 1;
        yield event;
        if (left === 0) return;
      }
      if (rows.length < size) return;
      // The limit is not reached because of hidden events, of which there may be millions.
      size = PAGE;
    }
  };
};

/** Returns the last position of the log; null if it is empty. */
export const readHead = async (query: Query): Promise<Position | null> => {
  const [row] = await query('head', 'select max(position) as head from eventlog.event', []);
  return row?.head ? (BigInt(row.head) as Position) : null;
};
