import type pg from 'pg';
import { type EventStore, type Position, type RecordedEvent, readInPages } from '../port.ts';

export const COLUMNS = 'e.position, e.stream, e.revision, e.id, e.type, e.data, e.metadata';

export const toRecordedEvent = (row: pg.QueryResultRow): RecordedEvent => ({
  position: BigInt(row.position) as Position,
  stream: row.stream,
  revision: row.revision,
  id: row.id,
  type: row.type,
  data: row.data,
  metadata: row.metadata,
});

/** Runs a named statement. Its error reaches every reader that shares it. */
export type Query = (name: string, text: string, values: unknown[]) => Promise<pg.QueryResultRow[]>;

/** Rows of a stream; null: it was deleted for ever. */
export type Page = pg.QueryResultRow[] | null;

interface Wanted {
  readonly stream: string;
  readonly from: number;
  /** Rows. */
  readonly size: number;
  resolve(page: Page): void;
  reject(reason: unknown): void;
}

/** Rows per page, and streams per statement. */
export const PAGE = 1_000;
const MAX_STREAMS = 100;

const FORWARDS = `
  select q.n::int as n, s.expired, e.*
  from unnest($1::text[], $2::int[], $3::int[]) with ordinality as q (stream, from_revision, size, n)
  join eventlog.stream s on s.name = q.stream
  left join lateral (
    select ${COLUMNS} from eventlog.event e
    where not s.expired and e.stream = q.stream and e.revision >= greatest(q.from_revision, s.truncated_before)
    order by e.revision limit q.size) e on true
  where s.expired or e.revision is not null
  order by q.n, e.revision`;

/**
 * Reads pages of streams, forwards. Readers of the same turn of the event loop share a statement, because for short streams a
 * round trip costs more than the rows.
 */
function createPages(query: Query) {
  let waiting: Wanted[] = [];

  const flush = async (): Promise<void> => {
    const batch = waiting;
    waiting = [];
    if (batch.length === 0) return;
    try {
      const values = [
        batch.map(({ stream }) => stream),
        batch.map(({ from }) => from),
        batch.map(({ size }) => size),
      ];
      const rows = Map.groupBy(await query('read_pages', FORWARDS, values), (row) => row.n as number);
      batch.forEach((wanted, index) => {
        const page = rows.get(index + 1) ?? [];
        wanted.resolve(page[0]?.expired ? null : page);
      });
    } catch (error) {
      for (const wanted of batch) wanted.reject(error);
    }
  };

  /** Returns at most `size` rows of the stream from a revision on. */
  return (stream: string, from: number, size: number): Promise<Page> =>
    new Promise((resolve, reject) => {
      waiting.push({ stream, from, size, resolve, reject });
      if (waiting.length === 1) setImmediate(() => void flush());
      else if (waiting.length >= MAX_STREAMS) void flush();
    });
}

/** Creates the reader of streams, page by page. `now`: milliseconds since the epoch, for expiry. */
export function createStreamReader(query: Query, now: () => number): EventStore['readStream'] {
  const sharedPage = createPages(query);

  const readBackwards = (stream: string, from: number, size: number) =>
    query(
      'read_backwards',
      `select ${COLUMNS} from eventlog.event e join eventlog.stream s on s.name = e.stream
       where e.stream = $1 and not s.expired and e.revision >= s.truncated_before and e.revision <= $2
       order by e.revision desc limit $3`,
      [stream, from, size],
    );

  return (stream, read = {}) => {
    const pageOf = async (from: number | null, size: number) => {
      const rows = await (read.direction === 'backwards'
        ? readBackwards(stream, from ?? 2 ** 31 - 1, size)
        : sharedPage(stream, from ?? 0, size));
      return rows?.map(toRecordedEvent) ?? null;
    };
    return readInPages(pageOf, read, PAGE, now);
  };
}

/** Returns the last position of the log; null if it is empty. */
export async function readHead(query: Query): Promise<Position | null> {
  const [row] = await query('head', 'select max(position) as head from eventlog.event', []);
  return row?.head ? (BigInt(row.head) as Position) : null;
}
