/**
 * The event store as the rest of the house sees it: what a command, a projection or a processor may
 * ask of a log, whichever database is behind it. `eventstoredb/` and `postgres/` implement it and one
 * contract suite (`test/contract/event-store.ts`) holds both to it.
 */

declare const positionBrand: unique symbol;

/** A place in the global log. Opaque: compare it, store it, never count with it. Not dense. */
export type Position = bigint & { readonly [positionBrand]: true };

/** The number of an event in its stream, from 0 without gaps. */
export type Revision = number;

/** What an append demands of its stream. `any` is no protection: only an exact state resends safely. */
export type ExpectedRevision = Revision | 'no_stream' | 'stream_exists' | 'any';

export interface EventMetadata {
  /** The request, or the run of a processor, that set all this off. */
  readonly $correlationId: string;
  /** The event or request that directly led to this event. */
  readonly $causationId: string;
  /** When it happened, ISO 8601 UTC, by the process's injected clock. */
  readonly at: string;
  /** From this instant on (by the reader's clock) the port hides the event. ISO 8601 UTC. */
  readonly expires_at?: string;
  readonly partner_id?: string;
  readonly key_id?: string;
  /** The span that appended it, as W3C writes it: only while traces are on. */
  readonly traceparent?: string;
  /** A user of the dashboard, in place of a key. */
  readonly user_id?: string;
}

export interface NewEvent {
  /** UUID, fixed before the first try, so that a resend of the same append is harmless. */
  readonly id: string;
  /** As stored, for example `lookup.ReservationMade.v1`. Never begins with `$`. */
  readonly type: string;
  /** A JSON object. Key order survives. */
  readonly data: object;
  readonly metadata: EventMetadata;
}

export interface RecordedEvent extends NewEvent {
  readonly stream: string;
  readonly revision: Revision;
  readonly position: Position;
}

export interface Appended {
  /** The revision of the last event appended. */
  readonly revision: Revision;
  /** The position of the last event appended; null where the store answers a resend without it. */
  readonly position: Position | null;
}

export interface ReadOptions {
  readonly direction?: 'forwards' | 'backwards';
  /** The first revision to return (inclusive). Default: the stream's start, or its end backwards. */
  readonly from?: Revision;
  /** Of events returned: hidden ones take nothing of it. */
  readonly limit?: number;
  /** Return events past their `expires_at` too, as long as the store has them. Default: they are hidden. */
  readonly includeExpired?: boolean;
}

export interface FollowOptions {
  /** Events strictly after this position; null means from the log's beginning. */
  readonly after: Position | null;
  /** Stream name prefixes; none means every stream. Positions still advance over the others. */
  readonly prefixes?: readonly string[];
  /** At most so many events in a batch (default 500). */
  readonly batchSize?: number;
  /** Events past their `expires_at` come too, as long as the store has them. Default: they are hidden. */
  readonly includeExpired?: boolean;
  /** Ends the iteration without an error. */
  readonly signal: AbortSignal;
}

export interface Batch {
  readonly events: readonly RecordedEvent[];
  /** All non-system events up to here have been passed, whether returned, filtered or hidden. */
  readonly position: Position;
}

export interface ForgetNamesOptions {
  /** What the names begin with. */
  readonly prefixes: readonly string[];
  /** Streams that were deleted earlier, milliseconds since the epoch. */
  readonly before: number;
  /** A name that keeps this one from being forgotten while the store knows of it; null: there is none. */
  readonly successorOf: (stream: string) => string | null;
}

export interface EventStore {
  /**
   * Appends all events or none.
   * @throws WrongExpectedRevision, StreamExpired, AppendTooLarge, StoreBusy, StoreUnavailable: nothing was
   *   written. OutcomeUnknown: it may have been; resend the same ids at the same expectation.
   */
  append(stream: string, expected: ExpectedRevision, events: readonly NewEvent[]): Promise<Appended>;

  /** The events of one stream; a stream that is not there, or has expired, is empty. @throws StoreUnavailable */
  readStream(stream: string, options?: ReadOptions): AsyncIterable<RecordedEvent>;

  /**
   * The global log from a position: what is there, then what comes, in order, without a gap or a repeat,
   * for ever. Reconnects by itself. A batch holds at least one event or a position further on.
   */
  follow(options: FollowOptions): AsyncIterable<Batch>;

  /** The position of the last non-system event that any append has made; null in an empty log. @throws StoreUnavailable */
  head(): Promise<Position | null>;

  /**
   * Deletes a whole stream for ever: it reads as empty and every later append to it is refused, until its name is
   * forgotten.
   * A stream that is not there stays as it is. Repeating it is harmless, also after OutcomeUnknown.
   * @throws WrongExpectedRevision when the stream has gone on past `last`; OutcomeUnknown, StoreUnavailable
   */
  expire(stream: string, last: Revision): Promise<void>;

  /** Whether a stream was deleted for ever, and its name cannot be used again. @throws StoreUnavailable */
  isExpired(stream: string): Promise<boolean>;

  /**
   * Forgets names of deleted streams, which may then be used again, from revision 0. A store whose deleted names cost
   * nothing, or cannot be forgotten, keeps them.
   * @returns how many were forgotten
   * @throws StoreUnavailable
   */
  forgetNames(options: ForgetNamesOptions): Promise<number>;

  /** Drops the events before this revision; the stream goes on. Repeating it is harmless. */
  truncateBefore(stream: string, revision: Revision): Promise<void>;

  /** May be called again. */
  close(): Promise<void>;
}

/** The stream is not in the demanded state. `actual` is its last revision, null where there is none. */
export class WrongExpectedRevision extends Error {
  readonly stream: string;
  readonly actual: Revision | null;
  constructor(stream: string, actual: Revision | null) {
    super(`stream ${stream} is at ${actual ?? 'no revision'}`);
    this.stream = stream;
    this.actual = actual;
  }
}

/** The stream was expired, and its name is not forgotten. */
export class StreamExpired extends Error {}

/** Over 1 MiB in one append. */
export class AppendTooLarge extends Error {}

/** More work waits for the store than it can finish in two seconds. Nothing was written. */
export class StoreBusy extends Error {}

/** The store refused or cannot be reached. Nothing was written. */
export class StoreUnavailable extends Error {}

/** The answer did not come: the append may or may not have happened. Never report it as a failure. */
export class OutcomeUnknown extends Error {}

/** One append's limit on both stores: data and metadata as JSON, in bytes. */
export const MAX_APPEND_BYTES = 1_048_576;
