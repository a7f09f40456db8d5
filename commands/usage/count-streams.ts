import { v7 as uuid } from 'uuid';
import { type UsageEvent, usageEvents, usageStream } from '../../domain/usage/events.ts';
import {
  type EventStore,
  type ExpectedRevision,
  type NewEvent,
  type Revision,
  StreamExpired,
  WrongExpectedRevision,
} from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { backoffMs, endsWithin, pause } from '../../platform/clock/waiting.ts';
import { toNewEvents } from '../handle.ts';

/** Makes the events of counts. */
export interface CountEvents<Row> {
  counted(counts: Row[]): UsageEvent;
  /** Makes the event that reverses rows counted earlier on the same stream. */
  corrected(counts: Row[]): UsageEvent;
}

/** One append of counts. Its event id is fixed, so resending it is idempotent. */
export interface CountAppend<Row> {
  /** @throws the port's errors */
  send(): Promise<void>;
  /**
   * Abandons the stream, and reverses these rows in the background if the append has been or will be written. Their
   * callers were answered that they are not counted.
   */
  takeBack(rows: readonly Row[]): void;
}

export interface CountStreams<Row> {
  /** `day` as `YYYY-MM-DD`. */
  begin(day: string, rows: Row[]): CountAppend<Row>;
  /** Switches to new streams, because the revisions of the current ones are unknown. */
  startAfresh(): void;
  /** Waits for corrections, at most `ms` milliseconds. */
  close(ms: number): Promise<void>;
}

const RETRY = { firstMs: 100, mostMs: 5_000 } as const;

/** Manages the usage streams of this process, one per boot and UTC day, which no other process appends to. */
export function createCountStreams<Row>(
  store: EventStore,
  clock: Clock,
  { counted, corrected }: CountEvents<Row>,
): CountStreams<Row> {
  const closing = new AbortController();
  const corrections = new Set<Promise<void>>();
  let bootId = uuid();
  let revisions = new Map<string, Revision>();

  const newEvents = (event: UsageEvent): NewEvent[] =>
    toNewEvents(usageEvents, [event], { correlationId: bootId, causationId: bootId, at: clock.now() });

  const startAfresh = (): void => {
    bootId = uuid();
    revisions = new Map();
  };

  const begin = (day: string, rows: Row[]): CountAppend<Row> => {
    const own = revisions;
    const stream = usageStream(bootId, day);
    const expected = own.get(stream) ?? 'no_stream';
    const events = newEvents(counted(rows));
    return {
      send: async () => {
        const { revision } = await store.append(stream, expected, events);
        own.set(stream, revision);
      },
      takeBack: (taken) => {
        // The abandoned stream now receives only the correction.
        if (own === revisions) startAfresh();
        const wrong = newEvents(corrected([...taken]));
        const nothing = newEvents(corrected([]));
        const id = events[0]?.id ?? '';
        const correction = correct({ store, stream, expected, id, wrong, nothing }, closing.signal);
        corrections.add(correction);
        void correction.finally(() => corrections.delete(correction));
      },
    };
  };

  return {
    begin,
    startAfresh,
    close: async (ms) => {
      await endsWithin(Promise.all(corrections), ms);
      closing.abort();
    },
  };
}

interface Doubt {
  readonly store: EventStore;
  readonly stream: string;
  readonly expected: ExpectedRevision;
  /** Id of the event that may have been written. */
  readonly id: string;
  readonly wrong: readonly NewEvent[];
  /** An empty event that takes its revision. */
  readonly nothing: readonly NewEvent[];
}

/**
 * Resolves a doubtful append and reverses it if it was written. It appends an empty event at the same expected revision:
 * once that is accepted, the doubtful append can never succeed. Never rejects.
 */
async function correct(doubt: Doubt, signal: AbortSignal): Promise<void> {
  const { store, stream, expected, wrong, nothing } = doubt;
  let writtenAt: Revision | null = null;
  for (let failures = 1; !signal.aborted; failures += 1) {
    try {
      await store.append(stream, writtenAt ?? expected, writtenAt === null ? nothing : wrong);
      return;
    } catch (error) {
      if (error instanceof StreamExpired) return;
      if (error instanceof WrongExpectedRevision) {
        // After the counts, the stream may continue with totals.
        const found: Revision | 'another' | null = writtenAt === null ? await find(doubt) : error.actual;
        if (found === 'another') return;
        writtenAt = found;
      }
    }
    await pause(backoffMs(failures, RETRY), signal);
  }
}

/** Returns the event at the doubtful append's revision; null if it is not readable yet. */
async function find({ store, stream, expected, id }: Doubt): Promise<Revision | 'another' | null> {
  const from = typeof expected === 'number' ? expected + 1 : 0;
  try {
    for await (const stored of store.readStream(stream, { from, limit: 1 })) {
      return stored.id === id ? stored.revision : 'another';
    }
  } catch {
    // The caller's next round retries.
  }
  return null;
}
