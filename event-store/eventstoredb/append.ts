import { type AppendResult, type EventStoreDBClient, jsonEvent } from '@eventstore/db-client';
import { createGate, type Gate } from '../../platform/gate.ts';
import { endsWithin } from '../../platform/pause.ts';
import { serialiseAppend } from '../append-check.ts';
import {
  type Appended,
  type EventStore,
  type ExpectedRevision,
  type NewEvent,
  OutcomeUnknown,
  type Position,
  StoreBusy,
  StoreUnavailable,
  WrongExpectedRevision,
} from '../port.ts';
import { writeError } from './errors.ts';
import { pause, within } from './timing.ts';

export interface Appender {
  readonly append: EventStore['append'];
  /** Lets no further append in and waits for those under way, for two seconds at most. */
  close(): Promise<void>;
}

/** The server lets 100 calls share a connection, and the followers need some of them. */
const ROOM = 64;
const PATIENCE_MS = 2_000;
/**
 * Not sooner: a resend that overtakes the commit of the first try is held by the server for 2 to 3 seconds
 * and ends in its 'commit phase timeout'.
 */
const RETRY_MS = 200;
/** A try that has less time than this would only turn a clear refusal into a doubt. */
const SHORTEST_TRY_MS = 200;
/** The client's own deadline comes first, for it tells whether the call had left; ours is for when it hangs. */
const GRACE_MS = 100;
/** How long a closing appender lets appends end. */
const CLOSE_MS = 2_000;

/**
 * Appends with a deadline of its own. After a broken connection the same ids are sent again at the same
 * expectation, which the server takes as one append; not where the expectation is no exact one.
 *
 * @param deadlineMs milliseconds until an append without an answer is an unknown outcome
 */
export const createAppender = (client: EventStoreDBClient, deadlineMs: number): Appender => {
  const gate: Gate = createGate({
    room: ROOM,
    patienceMs: PATIENCE_MS,
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
        // Half the time, where there may be a second try: of an answer that was lost it finds out.
        return await send(stream, expected, events, exact && attempt === 0 ? left / 2 : left);
      } catch (raw) {
        const error = writeError(raw, stream);
        if (error instanceof WrongExpectedRevision) throw error; // it would know the same ids again
        if (error instanceof OutcomeUnknown) doubt = error;
        else if (!(error instanceof StoreUnavailable)) throw doubt ?? error;
        const again = !closed && (doubt === null || exact);
        if (!again || performance.now() + RETRY_MS + SHORTEST_TRY_MS > deadline) throw doubt ?? error;
        await pause(RETRY_MS);
      }
    }
  };

  return {
    append: async (stream, expected, events) => {
      serialiseAppend(stream, events);
      if (closed) throw new StoreUnavailable('the event store is closed');
      return gate.enter(() => persist(stream, expected, events));
    },
    close: async () => {
      closed = true;
      await endsWithin(gate.idle(), CLOSE_MS);
    },
  };
};

const isExact = (expected: ExpectedRevision): boolean =>
  typeof expected === 'number' || expected === 'no_stream';

const toClientEvent = ({ id, type, data, metadata }: NewEvent) =>
  jsonEvent({ id, type, data: data as Record<string, unknown>, metadata: { ...metadata } });

const toAppended = ({ nextExpectedRevision, position }: AppendResult): Appended => ({
  revision: Number(nextExpectedRevision),
  position: position ? (position.commit as Position) : null,
});
