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
import { backoffMs } from '../../platform/backoff.ts';
import type { Clock } from '../../platform/clock.ts';
import { endsWithin, pause } from '../../platform/pause.ts';
import { toNewEvents } from '../handle.ts';

/** The events that counts become. */
export interface CountEvents<Row> {
  counted(counts: Row[]): UsageEvent;
  /** Takes back rows that were counted before it on the same stream. */
  corrected(counts: Row[]): UsageEvent;
}

/** One append of counts. Its event id is fixed, so that sending it again is harmless. */
export interface CountAppend<Row> {
  /** @throws the port's errors */
  send(): Promise<void>;
  /**
   * Leaves the stream, and corrects these rows in the background if the append has been or is still going to be
   * written. Its answers say that they are not counted.
   */
  takeBack(rows: readonly Row[]): void;
}

export interface CountStreams<Row> {
  /** `day` as `YYYY-MM-DD`. */
  begin(day: string, rows: Row[]): CountAppend<Row>;
  /** Goes on with new streams: it is not known where the current ones stand. */
  startAfresh(): void;
  /** Waits for corrections, for so many milliseconds at most. */
  close(ms: number): Promise<void>;
}

const RETRY = { firstMs: 100, mostMs: 5_000 } as const;

/** The usage streams that a process writes: one a boot and UTC day. Nobody else appends counts to them. */
export const createCountStreams = <Row>(
  store: EventStore,
  clock: Clock,
  { counted, corrected }: CountEvents<Row>,
): CountStreams<Row> => {
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
        // Only the correction is written to this stream from now on.
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
};

interface Doubt {
  readonly store: EventStore;
  readonly stream: string;
  readonly expected: ExpectedRevision;
  /** Of the event whose append may be written. */
  readonly id: string;
  /** Corrects it. */
  readonly wrong: readonly NewEvent[];
  /** Changes nothing: an event to stand in its place. */
  readonly nothing: readonly NewEvent[];
}

/**
 * Finds out whether a doubtful append was written, and corrects it if so. An event without counts is appended at the
 * same expectation: where it is taken, the doubtful append is refused for ever after. Never rejects.
 */
const correct = async (doubt: Doubt, signal: AbortSignal): Promise<void> => {
  const { store, stream, expected, wrong, nothing } = doubt;
  let writtenAt: Revision | null = null;
  for (let failures = 1; !signal.aborted; failures += 1) {
    try {
      await store.append(stream, writtenAt ?? expected, writtenAt === null ? nothing : wrong);
      return;
    } catch (error) {
      if (error instanceof StreamExpired) return;
      if (error instanceof WrongExpectedRevision) {
        // Past the counts, the stream has gone on with totals.
        const found: Revision | 'another' | null = writtenAt === null ? await find(doubt) : error.actual;
        if (found === 'another') return;
        writtenAt = found;
      }
    }
    await pause(backoffMs(failures, RETRY), signal);
  }
};

/** What stands in the doubtful append's place; null: no reader sees it yet, or it cannot be read now. */
const find = async ({ store, stream, expected, id }: Doubt): Promise<Revision | 'another' | null> => {
  const from = typeof expected === 'number' ? expected + 1 : 0;
  try {
    for await (const stored of store.readStream(stream, { from, limit: 1 })) {
      return stored.id === id ? stored.revision : 'another';
    }
  } catch {
    // The next round asks again.
  }
  return null;
};
