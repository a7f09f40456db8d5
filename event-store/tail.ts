import type { Logger } from 'pino';
import { approximateBytes } from '../platform/size.ts';
import { createWakeup } from '../platform/wakeup.ts';
import { isHidden } from './hidden.ts';
import type { Batch, EventStore, FollowOptions, Position, RecordedEvent } from './port.ts';

export interface TailFollowOptions extends FollowOptions {
  /** Returns how long events may wait for a batch before this follower gets them, in milliseconds; called each time. */
  readonly gatherMs?: () => number;
}

/** The newest part of the log, read and decoded once per process for all of its followers. */
export interface Tail {
  /** Like `EventStore.follow`. A follower behind the tail's memory reads the store separately until it has caught up. */
  follow(options: TailFollowOptions): AsyncGenerator<Batch>;
  /** Returns whether a follower at this position can read from memory. */
  covers(position: Position | null): boolean;
  /** Ends the current gathering, because a caller waits for the next events. */
  hurry(): void;
  close(): Promise<void>;
}

interface Chunk extends Batch {
  /** The position before the chunk. */
  readonly after: Position | null;
  readonly bytes: number;
}

export interface TailOptions {
  readonly store: Pick<EventStore, 'follow' | 'head'>;
  /** Returns milliseconds since the epoch, for expiry. */
  readonly now: () => number;
  readonly log: Pick<Logger, 'error'>;
}

const BATCH_EVENTS = 500;
/** Maximum bytes per batch, unless a single read brought more. */
const BATCH_BYTES = 4 * 1_048_576;
/** Memory for followers that are a little slower. */
const REMEMBERED_EVENTS = 5_000;
const REMEMBERED_BYTES = 32 * 1_048_576;
/** Smaller batches gather, because under load a read per handful of events costs more than the events. */
const SMALL_BATCH_EVENTS = 100;
const GATHER_MS = 200;
const RETRY_MS = 250;

/** Creates a tail, which starts reading at the head of the log with its first follower. */
export const createTail = ({ store, now, log }: TailOptions): Tail => {
  const memory = createMemory();
  const closing = new AbortController();
  const gathering = createWakeup();
  const gatherTimes = new Set<() => number>();
  let reading: Promise<void> | null = null;

  const read = async (): Promise<void> => {
    const { signal } = closing;
    while (!memory.hasBegun() && !signal.aborted) {
      await store.head().then(memory.begin, () => gathering.wait(RETRY_MS, signal));
    }
    while (!signal.aborted) {
      await readOn(signal).catch(async (error: unknown) => {
        log.error({ error: String(error) }, 'the log could not be read; retry scheduled');
        await gathering.wait(RETRY_MS, signal);
      });
    }
  };

  const readOn = async (signal: AbortSignal): Promise<void> => {
    const following = { after: memory.end(), batchSize: BATCH_EVENTS, includeExpired: true, signal };
    for await (const batch of store.follow(following)) {
      memory.add(batch);
      if (batch.events.length >= SMALL_BATCH_EVENTS) continue;
      const ms = Math.min(GATHER_MS, ...[...gatherTimes].map((gatherMs) => gatherMs()));
      if (ms > 0) await gathering.wait(ms, signal);
    }
  };

  /** Follows the store up to the first batch that the tail's memory covers. */
  async function* readSeparately(options: FollowOptions, signal: AbortSignal): AsyncGenerator<Batch> {
    const joining = new AbortController();
    const following = { ...options, signal: AbortSignal.any([signal, joining.signal]) };
    for await (const batch of store.follow(following)) {
      if (memory.covers(batch.position)) joining.abort();
      yield batch;
    }
  }

  const visible = ({ events, position }: Batch, { prefixes, includeExpired }: FollowOptions): Batch => {
    const instant = now();
    const isWanted = (event: RecordedEvent): boolean =>
      (prefixes === undefined || prefixes.some((prefix) => event.stream.startsWith(prefix))) &&
      (includeExpired === true || !isHidden(event, instant));
    return { events: events.filter(isWanted), position };
  };

  async function* follow({
    gatherMs = () => GATHER_MS,
    ...options
  }: TailFollowOptions): AsyncGenerator<Batch> {
    const signal = AbortSignal.any([options.signal, closing.signal]);
    reading ??= read();
    gatherTimes.add(gatherMs);
    let { after } = options;
    try {
      while (!signal.aborted) {
        if (memory.hasBegun() && !memory.covers(after)) {
          for await (const batch of readSeparately({ ...options, after }, signal)) {
            after = batch.position;
            yield batch;
          }
          continue;
        }
        const batch = memory.after(after);
        if (batch === null) await memory.grown(signal);
        else {
          after = batch.position;
          yield visible(batch, options);
        }
      }
    } finally {
      gatherTimes.delete(gatherMs);
    }
  }

  return {
    follow,
    covers: memory.covers,
    hurry: gathering.wake,
    close: async () => {
      closing.abort();
      await reading?.catch(() => undefined);
    },
  };
};

/** Keeps the newest batches of the log, within bounds. */
const createMemory = () => {
  const chunks: Chunk[] = [];
  let events = 0;
  let bytes = 0;
  /** End of the newest batch; undefined until the tail has started. */
  let end: Position | null | undefined;
  const waiting = new Set<() => void>();

  const wakeAll = (): void => {
    for (const wake of waiting) wake();
  };

  const forgetOldest = (): void => {
    const oldest = chunks.shift();
    events -= oldest?.events.length ?? 0;
    bytes -= oldest?.bytes ?? 0;
  };

  return {
    hasBegun: (): boolean => end !== undefined,
    end: (): Position | null => end ?? null,
    begin: (position: Position | null): void => {
      end = position;
      wakeAll();
    },
    add: (batch: Batch): void => {
      const chunk = {
        ...batch,
        after: end ?? null,
        bytes: batch.events.reduce((sum, event) => sum + approximateBytes(event), 0),
      };
      chunks.push(chunk);
      end = batch.position;
      events += batch.events.length;
      bytes += chunk.bytes;
      while (chunks.length > 1 && (events > REMEMBERED_EVENTS || bytes > REMEMBERED_BYTES)) forgetOldest();
      wakeAll();
    },
    /** Returns whether memory holds everything after a position. */
    covers: (position: Position | null): boolean => {
      if (end === undefined) return false;
      const start = chunks[0] ? chunks[0].after : end;
      return start === null || (position !== null && position >= start);
    },
    /** Returns a batch after a covered position; null if there is nothing yet. */
    after: (position: Position | null): Batch | null => {
      const isAfter = (at: Position): boolean => position === null || at > position;
      const first = chunks.findIndex((chunk) => isAfter(chunk.position));
      if (first < 0) return null;
      let size = 0;
      let count = 0;
      const beyond = chunks.findIndex((chunk, index) => {
        if (index < first) return false;
        size += chunk.bytes;
        count += chunk.events.length;
        return index > first && (size > BATCH_BYTES || count > BATCH_EVENTS);
      });
      const taken = chunks.slice(first, beyond < 0 ? chunks.length : beyond);
      return {
        events: taken.flatMap((chunk) => chunk.events).filter((event) => isAfter(event.position)),
        position: (taken.at(-1) as Chunk).position,
      };
    },
    /** Resolves when there may be more. */
    grown: (signal: AbortSignal): Promise<void> =>
      new Promise((resolve) => {
        const done = (): void => {
          waiting.delete(done);
          signal.removeEventListener('abort', done);
          resolve();
        };
        waiting.add(done);
        signal.addEventListener('abort', done);
        if (signal.aborted) done();
      }),
  };
};
