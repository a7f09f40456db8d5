/**
 * The event store as commands, projections and processors see it. `eventstoredb/` and `postgres/` implement it; one
 * contract suite (`test/contract/event-store.ts`) tests both.
 */

declare const positionBrand: unique symbol;

/** A position in the global log. Opaque: positions can be compared and stored, but are not dense. */
export type Position = bigint & { readonly [positionBrand]: true };

/** The number of an event in its stream, from 0 without gaps. */
export type Revision = number;

/** Required state of the stream. Only a revision or `no_stream` makes a resend safe; `any` protects against nothing. */
export type ExpectedRevision = Revision | 'no_stream' | 'stream_exists' | 'any';

export interface EventMetadata {
  /** Id of the request, or of the processor's run, that started the chain. */
  readonly $correlationId: string;
  /** Id of the event or request that directly caused this event. */
  readonly $causationId: string;
  /** Time of the event, ISO 8601 UTC, from the process's injected clock. */
  readonly at: string;
  /** The port hides the event from this instant on, by the reader's clock. ISO 8601 UTC. */
  readonly expires_at?: string;
  readonly partner_id?: string;
  readonly key_id?: string;
  /** W3C trace parent of the appending span; only while tracing is on. */
  readonly traceparent?: string;
  /** A dashboard user, instead of a key. */
  readonly user_id?: string;
}

export interface NewEvent {
  /** UUID, fixed before the first attempt, so that a resend is idempotent. */
  readonly id: string;
  /** Stored type, for example `lookup.ReservationMade.v1`. Never begins with `$`. */
  readonly type: string;
  /** A JSON object, whose key order is preserved. */
  readonly data: object;
  readonly metadata: EventMetadata;
}

export interface RecordedEvent extends NewEvent {
  readonly stream: string;
  readonly revision: Revision;
  readonly position: Position;
}

export interface Appended {
  /** Revision of the last appended event. */
  readonly revision: Revision;
  /** Position of the last appended event; null if the store answers a resend without it. */
  readonly position: Position | null;
}

export interface ReadOptions {
  readonly direction?: 'forwards' | 'backwards';
  /** First revision to return, inclusive. Default: the stream's start, or its end when reading backwards. */
  readonly from?: Revision;
  /** Maximum number of returned events; hidden ones do not count. */
  readonly limit?: number;
  /** Includes events past their `expires_at` that the store still has. Default: they are hidden. */
  readonly includeExpired?: boolean;
  /** Called if the stream was deleted for ever and its name is not forgotten; by reads forwards without a limit. */
  readonly onExpired?: () => void;
}

export interface FollowOptions {
  /** Returns events strictly after this position; null: from the start of the log. */
  readonly after: Position | null;
  /** Stream name prefixes; omitted: all streams. The position also advances over other streams. */
  readonly prefixes?: readonly string[];
  /** Maximum number of events per batch (default 500). */
  readonly batchSize?: number;
  /** Includes events past their `expires_at` that the store still has. Default: they are hidden. */
  readonly includeExpired?: boolean;
  /** Ends the iteration without an error. */
  readonly signal: AbortSignal;
}

export interface Batch {
  readonly events: readonly RecordedEvent[];
  /** All non-system events up to here have been returned, filtered or hidden. */
  readonly position: Position;
}

export interface ForgetNamesOptions {
  readonly prefixes: readonly string[];
  /** Only streams deleted before this instant, milliseconds since the epoch. */
  readonly before: number;
  /** Returns a stream whose name must be forgotten first; null if there is none. */
  readonly successorOf: (stream: string) => string | null;
}

export interface EventStore {
  /** How many appends to different streams are worth having under way: a store that commits one at a time gains nothing by more. */
  readonly concurrentCommits: number;

  /**
   * Appends all events or none.
   * @throws WrongExpectedRevision, StreamExpired, AppendTooLarge, StoreBusy, StoreUnavailable: nothing was
   *   written. OutcomeUnknown: it may have been; resend the same ids, and no others with them, at the
   *   same expected revision.
   */
  append(stream: string, expected: ExpectedRevision, events: readonly NewEvent[]): Promise<Appended>;

  /** Reads a stream; one that does not exist or has expired is empty. @throws StoreUnavailable */
  readStream(stream: string, options?: ReadOptions): AsyncIterable<RecordedEvent>;

  /**
   * Follows the global log from a position, in order, without gaps or repeats, and waits for new events. Reconnects by
   * itself. Each batch has at least one event or a later position.
   */
  follow(options: FollowOptions): AsyncIterable<Batch>;

  /** Returns the position of the last appended non-system event; null if the log is empty. @throws StoreUnavailable */
  head(): Promise<Position | null>;

  /**
   * Deletes a whole stream for ever: it reads as empty, and every later append is rejected until its name is forgotten.
   * Idempotent, also after OutcomeUnknown; a missing stream is left alone.
   * @throws WrongExpectedRevision when the stream has gone on past `last`; OutcomeUnknown, StoreUnavailable
   */
  expire(stream: string, last: Revision): Promise<void>;

  /**
   * Forgets names of deleted streams, which may then be used again from revision 0. A store keeps them if they cost nothing
   * or cannot be forgotten.
   * @returns the number of forgotten names
   * @throws StoreUnavailable
   */
  forgetNames(options: ForgetNamesOptions): Promise<number>;

  /** Deletes the stream's events before this revision. Idempotent. */
  truncateBefore(stream: string, revision: Revision): Promise<void>;

  /** Releases connections. Idempotent. */
  close(): Promise<void>;
}

export interface StoreOptions {
  readonly url: string;
  /** Returns milliseconds since the epoch, for expiry. */
  readonly now: () => number;
  /** Milliseconds after which an unanswered append counts as an unknown outcome. Default 4,000. */
  readonly deadlineMs?: number;
  /** Called for each failed read of the log, with the position that it started after; the read is retried. */
  readonly onStall?: (error: Error, after: Position | null) => void;
}

/** The stream is at another revision than expected. `actual` is its last revision; null if it does not exist. */
export class WrongExpectedRevision extends Error {
  readonly stream: string;
  readonly actual: Revision | null;
  constructor(stream: string, actual: Revision | null) {
    super(`stream ${stream} is at ${actual ?? 'no revision'}`);
    this.stream = stream;
    this.actual = actual;
  }
}

/** The stream was deleted for ever and its name is not forgotten. */
export class StreamExpired extends Error {}

/** The append exceeds 1 MiB. */
export class AppendTooLarge extends Error {}

/** The queue of appends is longer than the store can finish in two seconds. Nothing was written. */
export class StoreBusy extends Error {}

/** The store rejected the call or cannot be reached. Nothing was written. */
export class StoreUnavailable extends Error {}

/** The append was sent but not answered: it may have happened. Never report it as a failure. */
export class OutcomeUnknown extends Error {}

/** Limit of one append: the `appendBytes` of its events. */
export const MAX_APPEND_BYTES = 1_048_576;

/**
 * Returns what an event counts towards `MAX_APPEND_BYTES`: data and metadata as JSON, and its type in UTF-16, as
 * EventStoreDB counts since 24.10 (23.10 counts the data alone).
 */
export const appendBytes = ({
  type,
  data,
  metadata,
}: Pick<Serialised, 'type' | 'data' | 'metadata'>): number =>
  Buffer.byteLength(data) + Buffer.byteLength(metadata) + 2 * type.length;

/** Returns whether an event is past its `expires_at` and so counts as deleted, even if the store still has it. */
export const isHidden = ({ metadata }: RecordedEvent, now: number): boolean =>
  metadata?.expires_at !== undefined && Date.parse(metadata.expires_at) <= now;

/**
 * Reads a stream page by page, as `EventStore.readStream`.
 * @param pageOf returns at most `size` events from a revision on (null: from where the reading begins); null: the stream was
 *   deleted for ever
 * @param maxPage events a page
 */
export async function* readInPages(
  pageOf: (from: Revision | null, size: number) => Promise<readonly RecordedEvent[] | null>,
  options: ReadOptions,
  maxPage: number,
  now: () => number,
): AsyncGenerator<RecordedEvent> {
  const step = options.direction === 'backwards' ? -1 : 1;
  let from = options.from ?? null;
  let left = options.limit ?? Number.POSITIVE_INFINITY;
  // The limit may not be reached because of hidden events, of which there may be millions: further pages are full ones.
  for (let size = Math.min(left, maxPage); left > 0; size = maxPage) {
    const page = await pageOf(from, size);
    if (page === null) return options.onExpired?.();
    const instant = now();
    for (const event of page) {
      if (!options.includeExpired && isHidden(event, instant)) continue;
      left -= 1;
      yield event;
      if (left === 0) return;
    }
    const last = page.at(-1);
    if (last === undefined || page.length < size || (step < 0 && last.revision === 0)) return;
    from = last.revision + step;
  }
}

export interface Serialised {
  readonly id: string;
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/**
 * Validates and serializes an append for either store: at least one event, distinct UUIDs as ids (EventStoreDB would
 * store a repeated id twice), no system type, at most 1 MiB.
 * @throws AppendTooLarge; TypeError for a bug of the caller
 */
export function serialiseAppend(stream: string, events: readonly NewEvent[]): Serialised[] {
  if (stream === '' || stream.startsWith('$')) throw new TypeError(`not a stream name: '${stream}'`);
  if (events.length === 0) throw new TypeError(`an append without events to ${stream}`);
  if (new Set(events.map((event) => event.id)).size !== events.length) {
    throw new TypeError(`a repeated event id in one append to ${stream}`);
  }
  let bytes = 0;
  const serialised = events.map(({ id, type, data, metadata }) => {
    if (!UUID.test(id)) throw new TypeError(`not an event id: '${id}'`);
    if (type === '' || type.startsWith('$')) throw new TypeError(`not an event type: '${type}'`);
    const row = { id, type, data: JSON.stringify(data), metadata: JSON.stringify(metadata) };
    bytes += appendBytes(row);
    return row;
  });
  if (bytes > MAX_APPEND_BYTES) throw new AppendTooLarge(`${bytes} bytes in one append to ${stream}`);
  return serialised;
}

/** Estimates an event's bytes, accurately enough to limit memory. */
export const approximateBytes = ({ data, metadata }: { data: unknown; metadata: unknown }): number =>
  200 + JSON.stringify([data, metadata]).length;
