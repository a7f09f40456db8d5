import type pg from 'pg';
import type { Serialised } from '../append-check.ts';
import {
  type Appended,
  type ExpectedRevision,
  type Position,
  StreamExpired,
  WrongExpectedRevision,
} from '../port.ts';

/** An append that waits for its transaction. */
export interface Pending {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly events: readonly Serialised[];
  readonly deadline: number;
  resolve(appended: Appended): void;
  reject(reason: Error): void;
}

/** The result of one append of a batch. */
export interface Outcome {
  readonly outcome: 'appended' | 'conflict' | 'expired';
  readonly revision: number;
  readonly position: string | null;
}

const BATCH_EVENTS = 512;
const BATCH_BYTES = 4 * 1_048_576;

/** Returns the first appends of a queue that fit into one transaction; always at least one. */
export const takeBatch = (queue: readonly Pending[]): Pending[] => {
  let events = 0;
  let bytes = 0;
  const end = queue.findIndex((append, index) => {
    events += append.events.length;
    bytes += append.events.reduce((sum, event) => sum + event.data.length + event.metadata.length, 0);
    return index > 0 && (events > BATCH_EVENTS || bytes > BATCH_BYTES);
  });
  return queue.slice(0, end < 0 ? queue.length : end);
};

/** Makes the statement that appends a batch. It returns an `Outcome` for each append. */
export const statement = (batch: readonly Pending[]): pg.QueryConfig => {
  const events = batch.flatMap((append) => append.events);
  return {
    name: 'append_batch',
    text: 'select outcome, revision, "position" from eventlog.append_batch($1,$2,$3,$4,$5,$6,$7)',
    values: [
      batch.map((append) => append.stream),
      batch.map((append) => expectedCode(append.expected)),
      batch.map((append) => append.events.length),
      events.map((event) => event.id),
      events.map((event) => event.type),
      events.map((event) => event.data),
      events.map((event) => event.metadata),
    ],
  };
};

const expectedCode = (expected: ExpectedRevision): number =>
  expected === 'no_stream' ? -1 : expected === 'any' ? -2 : expected === 'stream_exists' ? -4 : expected;

/** Settles the appends of a committed batch. @returns the last position in it; null if nothing was written */
export const settle = (batch: readonly Pending[], outcomes: readonly Outcome[]): Position | null => {
  let top: Position | null = null;
  batch.forEach((append, index) => {
    const { outcome, revision, position } = outcomes[index] as Outcome;
    if (outcome === 'expired') append.reject(new StreamExpired(append.stream));
    else if (outcome === 'conflict') {
      append.reject(new WrongExpectedRevision(append.stream, revision < 0 ? null : revision));
    } else {
      const at = position === null ? null : (BigInt(position) as Position);
      if (at !== null && (top === null || at > top)) top = at;
      append.resolve({ revision, position: at });
    }
  });
  return top;
};

export const fail = (batch: readonly Pending[], error: Error): void => {
  for (const append of batch) append.reject(error);
};
