import { type AppendResult, type EventStoreDBClient, jsonEvent } from '@eventstore/db-client';
import { endsWithin, pause, within } from '../../platform/clock/waiting.ts';
import { createSemaphore } from '../../platform/limits/semaphore.ts';
import {
  type Appended,
  type EventStore,
  type ExpectedRevision,
  type NewEvent,
  OutcomeUnknown,
  type Position,
  StoreBusy,
  StoreUnavailable,
  serialiseAppend,
  WrongExpectedRevision,
} from '../port.ts';
import { writeError } from './client.ts';

/** The server allows 100 calls per connection, and subscriptions and reads need some of them. */
const MAX_CONCURRENT_APPENDS = 64;
const MAX_WAIT_MS = 2_000;
/** A resend that overtakes the commit of the first attempt blocks 2 to 3 seconds on the server and times out there. */
const RETRY_MS = 200;
/** A shorter attempt would only turn a clear rejection into an unknown outcome. */
const MIN_ATTEMPT_MS = 200;
/** The client's deadline fires first, because its error shows whether the call was sent; ours covers a hanging call. */
const GRACE_MS = 100;
const CLOSE_MS = 2_000;

/**
 * Creates an appender with a deadline. After a broken connection it resends the same ids at the same exact expected
 * revision, which the server treats as one append; with `any` and `stream_exists` it does not resend.
 * @param deadlineMs milliseconds after which an unanswered append counts as an unknown outcome
 */
export function createAppender(client: EventStoreDBClient, deadlineMs: number) {
  const gate = createSemaphore({
    limit: MAX_CONCURRENT_APPENDS,
    maxWaitMs: MAX_WAIT_MS,
    refusal: (why) => new StoreBusy(why),
  });
  let closed = false;

  const send = async (
    stream: string,
    expected: ExpectedRevision,
    events: readonly NewEvent[],
    ms: number,
  ) => {
    const work = client.appendToStream(stream, events.map(toClientEvent), {
      expectedRevision: typeof expected === 'number' ? BigInt(expected) : expected,
      requiresLeader: true,
      deadline: ms,
    });
    return toAppended(
      await within(work, ms + GRACE_MS, () => new OutcomeUnknown(`no answer to an append to ${stream}`)),
    );
  };

  const persist = async (stream: string, expected: ExpectedRevision, events: readonly NewEvent[]) => {
    const deadline = performance.now() + deadlineMs;
    const exact = isExact(expected);
    let doubt: OutcomeUnknown | null = null;
    for (let attempt = 0; ; attempt += 1) {
      const left = deadline - performance.now();
      try {
        // The first attempt gets half the time, so that a second one can find out a lost outcome.
        return await send(stream, expected, events, exact && attempt === 0 ? left / 2 : left);
      } catch (raw) {
        const error = writeError(raw, stream);
        if (error instanceof WrongExpectedRevision) throw error; // a resend of stored ids would not conflict
        if (error instanceof OutcomeUnknown) doubt = error;
        else if (!(error instanceof StoreUnavailable)) throw doubt ?? error;
        const canRetry = !closed && (doubt === null || exact);
        if (!canRetry || performance.now() + RETRY_MS + MIN_ATTEMPT_MS > deadline) throw doubt ?? error;
        await pause(RETRY_MS);
      }
    }
  };

  return {
    append: async (...[stream, expected, events]: Parameters<EventStore['append']>): Promise<Appended> => {
      serialiseAppend(stream, events);
      if (closed) throw new StoreUnavailable('the event store is closed');
      return gate.enter(() => persist(stream, expected, events));
    },
    /** Rejects further appends and waits for running ones, at most two seconds. */
    close: async (): Promise<void> => {
      closed = true;
      await endsWithin(gate.idle(), CLOSE_MS);
    },
  };
}

const isExact = (expected: ExpectedRevision): boolean =>
  typeof expected === 'number' || expected === 'no_stream';

const toClientEvent = ({ id, type, data, metadata }: NewEvent) =>
  jsonEvent({ id, type, data: data as Record<string, unknown>, metadata: { ...metadata } });

const toAppended = ({ nextExpectedRevision, position }: AppendResult): Appended => ({
  revision: Number(nextExpectedRevision),
  position: position ? (position.commit as Position) : null,
});
