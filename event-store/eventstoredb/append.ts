import { randomUUID } from 'node:crypto';
import { endsWithin, pause } from '../../platform/clock/waiting.ts';
import { createSemaphore } from '../../platform/limits/semaphore.ts';
import {
  type Appended,
  AppendTooLarge,
  type EventStore,
  type ExpectedRevision,
  OutcomeUnknown,
  type Serialised,
  StoreBusy,
  StoreUnavailable,
  StreamExpired,
  serialiseAppend,
  WrongExpectedRevision,
} from '../port.ts';
import { CallFailed, type Connection, framed, UNAUTHENTICATED, UNAVAILABLE } from './grpc.ts';
import { type AppendAnswer, type AppendError, decodeAppended, encodeAppend } from './messages.ts';
import type { Nodes } from './nodes.ts';

const BATCH_APPEND = '/event_store.client.streams.Streams/BatchAppend';

/** Appends under way: small ones by number, large ones by number too, so that both hold some 16 MiB each. */
const MAX_APPENDS = 1_024;
const SMALL_CHARACTERS = 16_384;
const MAX_LARGE_APPENDS = 16;
const MAX_WAIT_MS = 2_000;
/** A resend that overtakes the commit of the first attempt blocks 2 to 3 seconds on the server and times out there. */
const RETRY_MS = 200;
/** A shorter attempt would only turn a clear rejection into an unknown outcome. */
const MIN_ATTEMPT_MS = 200;
const CLOSE_MS = 2_000;
/** A node answers so while it starts, and while it is cut off from the others. */
const NOT_LEADING = /Not Ready|No leader info/;

export interface Appender {
  append: EventStore['append'];
  /** Appends serialised events to any stream, also one of the server's own. */
  appendSerialised(
    stream: string,
    expected: ExpectedRevision,
    events: readonly Serialised[],
  ): Promise<Appended>;
  /** Rejects further appends and waits for running ones, at most two seconds. */
  close(): Promise<void>;
}

/**
 * Creates an appender with a deadline. After a broken connection it resends the same ids at the same exact expected
 * revision, which the server treats as one append; with `any` and `stream_exists` it does not resend.
 * @param deadlineMs milliseconds after which an unanswered append counts as an unknown outcome
 */
export function createAppender(nodes: Nodes, deadlineMs: number): Appender {
  const refusal = (why: string): Error => new StoreBusy(why);
  const gate = createSemaphore({ limit: MAX_APPENDS, maxWaitMs: MAX_WAIT_MS, refusal });
  const largeGate = createSemaphore({ limit: MAX_LARGE_APPENDS, maxWaitMs: MAX_WAIT_MS, refusal });
  const lines = new WeakMap<Connection, Line>();
  let closed = false;

  const lineOn = (connection: Connection): Line => {
    const known = lines.get(connection);
    if (known?.isOpen()) return known;
    const line = openLine(connection, (failure) => nodes.failed(connection, failure));
    lines.set(connection, line);
    return line;
  };

  const send = async (
    stream: string,
    expected: ExpectedRevision,
    events: readonly Serialised[],
    ms: number,
  ): Promise<Appended> => {
    const begun = performance.now();
    const connection = await nodes.connection('appends', ms).catch((error: CallFailed) => {
      throw new StoreUnavailable(error.message, { cause: error });
    });
    const left = begun + ms - performance.now();
    if (left <= 0) throw new StoreUnavailable('no connection in time');
    const { error, revision, position } = await lineOn(connection).send(stream, expected, events, left);
    if (error === null) return { revision, position };
    if (NOT_LEADING.test(error.message)) nodes.failed(connection, new CallFailed(UNAVAILABLE, error.message));
    throw refusalOf(error, stream);
  };

  const persist = async (stream: string, expected: ExpectedRevision, events: readonly Serialised[]) => {
    const deadline = performance.now() + deadlineMs;
    const exact = typeof expected === 'number' || expected === 'no_stream';
    let doubt: OutcomeUnknown | null = null;
    for (let attempt = 0; ; attempt += 1) {
      const left = deadline - performance.now();
      try {
        // The first attempt gets half the time, so that a second one can find out a lost outcome.
        return await send(stream, expected, events, exact && attempt === 0 ? left / 2 : left);
      } catch (error) {
        if (error instanceof WrongExpectedRevision) throw error; // a resend of stored ids would not conflict
        if (error instanceof OutcomeUnknown) doubt = error;
        else if (!(error instanceof StoreUnavailable)) throw doubt ?? error;
        const canRetry = !closed && (doubt === null || exact);
        if (!canRetry || performance.now() + RETRY_MS + MIN_ATTEMPT_MS > deadline) throw doubt ?? error;
        await pause(RETRY_MS);
      }
    }
  };

  const appendSerialised: Appender['appendSerialised'] = async (stream, expected, events) => {
    if (closed) throw new StoreUnavailable('the event store is closed');
    const size = events.reduce((sum, { data, metadata }) => sum + data.length + metadata.length, 0);
    return (size > SMALL_CHARACTERS ? largeGate : gate).enter(() => persist(stream, expected, events));
  };

  return {
    append: async (stream, expected, events) =>
      appendSerialised(stream, expected, serialiseAppend(stream, events)),
    appendSerialised,
    close: async () => {
      closed = true;
      await endsWithin(Promise.all([gate.idle(), largeGate.idle()]), CLOSE_MS);
    },
  };
}

type Line = ReturnType<typeof openLine>;

/** Opens a call on which appends go out and their answers come back in any order. */
function openLine(connection: Connection, onFailure: (failure: CallFailed) => void) {
  const waiting = new Map<
    string,
    (outcome: AppendAnswer | { readonly brokenBy: CallFailed | null }) => void
  >();
  let isOpen = true;
  let unsent: Buffer[] = [];

  const call = connection.call(BATCH_APPEND, {
    // The answer to an append that was given up finds nobody, and is dropped.
    onMessage: (bytes) => {
      const answer = decodeAppended(bytes);
      waiting.get(answer.correlationId)?.(answer);
    },
    onEnd: (failure) => {
      isOpen = false;
      for (const end of waiting.values()) end({ brokenBy: failure });
      if (failure !== null) onFailure(failure);
    },
  });

  /** Joins the writes of a turn. */
  const flush = (): void => {
    if (isOpen) call.write(Buffer.concat(unsent));
    unsent = [];
  };

  return {
    isOpen: () => isOpen && !connection.isClosed(),
    /** @throws OutcomeUnknown; StoreUnavailable when the append cannot have been sent */
    send: (stream: string, expected: ExpectedRevision, events: readonly Serialised[], ms: number) =>
      new Promise<AppendAnswer>((resolve, reject) => {
        const id = randomUUID();
        const late = (): void => {
          waiting.delete(id);
          reject(new OutcomeUnknown(`no answer to an append to ${stream}`));
        };
        const timer = setTimeout(late, ms);
        waiting.set(id, (outcome) => {
          waiting.delete(id);
          clearTimeout(timer);
          if ('brokenBy' in outcome) reject(lostOutcome(outcome.brokenBy, stream));
          else resolve(outcome);
        });
        if (unsent.push(framed(encodeAppend(id, stream, expected, events, ms))) === 1) setImmediate(flush);
      }),
  };
}

function lostOutcome(failure: CallFailed | null, stream: string): Error {
  if (failure?.neverSent || failure?.code === UNAUTHENTICATED) return new StoreUnavailable(failure.message);
  return new OutcomeUnknown(`the connection broke during an append to ${stream}`);
}

/** Maps a refusal. Unless the append is known to have been rejected, its outcome is unknown. */
function refusalOf({ kind, message, actual }: AppendError, stream: string): Error {
  switch (kind) {
    case 'WrongExpectedVersion':
      return new WrongExpectedRevision(stream, actual);
    case 'StreamDeleted':
      return new StreamExpired(stream);
    case 'MaximumAppendSizeExceeded':
      return new AppendTooLarge(stream);
    case 'AccessDenied':
      return new StoreUnavailable(`the server denies access to ${stream}`);
    default:
      if (/Too Busy|Is Busy/.test(message)) return new StoreBusy(message);
      if (NOT_LEADING.test(message)) return new StoreUnavailable(message);
      return new OutcomeUnknown(`${kind} ${message}`);
  }
}
