import {
  BACKWARDS,
  type RecordedEvent as ClientEvent,
  END,
  type EventStoreDBClient,
  FORWARDS,
  type ResolvedEvent,
  START,
  StreamDeletedError,
  StreamNotFoundError,
} from '@eventstore/db-client';
import { pause, within } from '../../platform/clock/waiting.ts';
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
import { eventsOf, isSystemEvent, positionOf, readError, toRecordedEvent } from './client.ts';

interface Cancellable extends AsyncIterable<ResolvedEvent> {
  cancel(): Promise<void>;
  destroy(): unknown;
}

const PAGE = 500;
/** Each event is read with its data, and the newest is rarely the server's own. */
const HEAD_PAGE = 4;
/** A sweep writes hundreds of the server's own events in a row; a larger page might hold too many large events. */
const MAX_HEAD_PAGE = 256;
const ATTEMPTS = 3;
const RETRY_MS = 50;
/** The server allows 100 calls per connection, which appends and subscriptions share. */
const MAX_CONCURRENT_READS = 24;
const MAX_WAIT_MS = 2_000;

/**
 * Creates a reader of pages, each with a deadline in milliseconds and retries. Concurrency is limited, so that readers
 * that retry after an outage do not use up the connection.
 */
export function createReader(
  client: EventStoreDBClient,
  now: () => number,
  deadlineMs: number,
  closing: AbortSignal,
): Pick<EventStore, 'readStream' | 'head'> {
  const readPage = createPageReader(deadlineMs, closing);

  const readStream = (stream: string, options: ReadOptions = {}): AsyncGenerator<RecordedEvent> => {
    const backwards = options.direction === 'backwards';
    const pageOf = async (from: number | null, maxCount: number) => {
      const events = await readPage(() =>
        client.readStream(stream, {
          direction: backwards ? BACKWARDS : FORWARDS,
          fromRevision: from !== null ? BigInt(from) : backwards ? END : START,
          maxCount,
          requiresLeader: true,
        }),
      );
      return events?.map(toRecordedEvent) ?? null;
    };
    return readInPages(pageOf, options, PAGE, now);
  };

  /** Skips the server's own events, which followers never see. */
  const head = async (): Promise<Position | null> => {
    let from: Position | null = null;
    for (let size = HEAD_PAGE; ; size = Math.min(4 * size, MAX_HEAD_PAGE)) {
      const events = (await readPage(() => allBackwards(client, from, size))) ?? [];
      const newest = events.find((event) => !isSystemEvent(event));
      if (newest) return positionOf(newest);
      const last = events.at(-1);
      if (!last) return null;
      from = positionOf(last);
    }
  };

  return { readStream, head };
}

const allBackwards = (client: EventStoreDBClient, from: Position | null, maxCount: number) =>
  client.readAll({
    direction: BACKWARDS,
    fromPosition: from === null ? END : { commit: from, prepare: from },
    maxCount,
    requiresLeader: true,
  });

/** null: the stream has a tombstone. */
type PageOfEvents = readonly ClientEvent[] | null;

/** Creates the function that reads one page, with retries, among a limited number of reads. */
function createPageReader(deadlineMs: number, closing: AbortSignal) {
  const gate = createSemaphore({
    limit: MAX_CONCURRENT_READS,
    maxWaitMs: MAX_WAIT_MS,
    refusal: (why) => new StoreBusy(why),
  });

  const tryPage = async (open: () => Cancellable): Promise<PageOfEvents> => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const resolved = await collect(open(), deadlineMs);
        // A read that closing the client cuts off looks complete.
        if (closing.aborted) throw new StoreUnavailable('the event store is closed');
        return eventsOf(resolved);
      } catch (error) {
        if (error instanceof StreamNotFoundError) return [];
        if (error instanceof StreamDeletedError) return null;
        if (error instanceof StoreUnavailable || attempt === ATTEMPTS) throw readError(error);
        await pause(RETRY_MS * attempt);
      }
    }
  };

  return (open: () => Cancellable): Promise<PageOfEvents> => gate.enter(() => tryPage(open));
}

/** Collects a read. A failed read or a deadline must cancel the call explicitly, or it stays open. */
async function collect(reading: Cancellable, deadlineMs: number): Promise<ResolvedEvent[]> {
  const all = async (): Promise<ResolvedEvent[]> => {
    const events: ResolvedEvent[] = [];
    for await (const event of reading) events.push(event);
    return events;
  };
  try {
    return await within(all(), deadlineMs, () => new StoreUnavailable('no answer to a read in time'));
  } catch (error) {
    void reading.cancel().catch(() => undefined);
    reading.destroy();
    throw error;
  }
}
