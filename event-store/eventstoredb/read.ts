import { pause } from '../../platform/clock/waiting.ts';
import { createSemaphore } from '../../platform/limits/semaphore.ts';
import {
  type EventStore,
  type Position,
  type ReadOptions,
  type RecordedEvent,
  readInPages,
  StoreBusy,
  StoreUnavailable,
} from '../port.ts';
import { CallFailed, type Connection, DEADLINE_EXCEEDED } from './grpc.ts';
import { decodeRead, encodeRead, type ReadRequest } from './messages.ts';
import type { Nodes } from './nodes.ts';

export const READ = '/event_store.client.streams.Streams/Read';

const PAGE = 500;
/** Each event is read with its data, and the newest is rarely the server's own. */
const HEAD_PAGE = 4;
/** A sweep writes hundreds of the server's own events in a row; a larger page might hold too many large events. */
const MAX_HEAD_PAGE = 256;
const ATTEMPTS = 3;
const RETRY_MS = 50;
/** The server allows 100 calls per connection, which subscriptions share. */
const MAX_CONCURRENT_READS = 64;
const MAX_WAIT_MS = 2_000;

/** Returns whether the server wrote the event: stream metadata, tombstones, statistics. */
export const isSystemEvent = ({ type, stream }: RecordedEvent): boolean =>
  type.startsWith('$') || stream.startsWith('$');

/** null: the stream has a tombstone. */
type Page = readonly RecordedEvent[] | null;

export interface Reader extends Pick<EventStore, 'readStream' | 'head'> {
  /** Returns the newest event of any stream, also of the server's own; null if it has none. */
  lastEvent(stream: string): Promise<RecordedEvent | null>;
}

/**
 * Creates a reader of pages, each with a deadline in milliseconds and retries. Concurrency is limited, so that readers
 * that retry after an outage do not use up the connection.
 */
export function createReader(nodes: Nodes, now: () => number, deadlineMs: number): Reader {
  const gate = createSemaphore({
    limit: MAX_CONCURRENT_READS,
    maxWaitMs: MAX_WAIT_MS,
    refusal: (why) => new StoreBusy(why),
  });
  const readPage = (request: ReadRequest): Promise<Page> =>
    gate.enter(async () => {
      const deadline = performance.now() + deadlineMs;
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await believedPage(nodes, request, deadline);
        } catch (error) {
          const wait = RETRY_MS * attempt;
          if (attempt === ATTEMPTS || performance.now() + wait > deadline)
            throw new StoreUnavailable((error as Error).message, { cause: error });
          await pause(wait);
        }
      }
    });

  const readStream = (stream: string, options: ReadOptions = {}): AsyncGenerator<RecordedEvent> => {
    const backwards = options.direction === 'backwards';
    const pageOf = (from: number | null, count: number) => readPage({ stream, backwards, from, count });
    return readInPages(pageOf, options, PAGE, now);
  };

  /** Skips the server's own events, which followers never see. */
  const head = async (): Promise<Position | null> => {
    let from: Position | null = null;
    for (let count = HEAD_PAGE; ; count = Math.min(4 * count, MAX_HEAD_PAGE)) {
      const events: Page = (await readPage({ stream: null, backwards: true, from, count })) ?? [];
      const newest = events.find((event) => !isSystemEvent(event));
      if (newest) return newest.position;
      const last = events.at(-1);
      if (!last) return null;
      from = last.position;
    }
  };

  return {
    readStream,
    head,
    lastEvent: async (stream) =>
      (await readPage({ stream, backwards: true, from: null, count: 1 }))?.at(0) ?? null,
  };
}

/** Reads a page until its answer can be believed. `deadline`: monotonic. @throws CallFailed */
async function believedPage(nodes: Nodes, request: ReadRequest, deadline: number): Promise<Page> {
  for (;;) {
    const connection = await nodes.connection('reads', deadline - performance.now());
    const askedAt = performance.now();
    if (askedAt >= deadline)
      throw new CallFailed(DEADLINE_EXCEEDED, 'no answer in time that can be believed');
    const page = await pageOn(connection, request, deadline - askedAt).catch((error: CallFailed) => {
      nodes.failed(connection, error);
      throw error;
    });
    if (await nodes.confirm(connection, askedAt)) return page;
  }
}

async function pageOn(connection: Connection, request: ReadRequest, ms: number): Promise<Page> {
  const events: RecordedEvent[] = [];
  try {
    await connection.request(READ, encodeRead(request), ms, (bytes) => {
      const { event } = decodeRead(bytes);
      if (event !== null) events.push(event);
    });
    return events;
  } catch (error) {
    if ((error as CallFailed).trailers.exception === 'stream-deleted') return null;
    throw error;
  }
}
