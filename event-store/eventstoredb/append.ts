import { type AppendResult, type EventStoreDBClient, jsonEvent } from '@eventstore/db-client';
import { serialiseAppend } from '../append-check.ts';
import {
  type Appended,
  type EventStore,
  type ExpectedRevision,
  type NewEvent,
  OutcomeUnknown,
  type Position,
  StoreUnavailable,
} from '../port.ts';
import { writeError } from './errors.ts';
import { createGate, type Gate } from './gate.ts';
import { pause, within } from './timing.ts';

export interface Appender {
  readonly append: EventStore['append'];
  /** Lets no further append in and waits for those under way. */
  close(): Promise<void>;
}

/** The server lets 100 calls share a connection, and the followers need some of them. */
const ROOM = 64;
const PATIENCE_MS = 2_000;
const RETRY_MS = 25;

/**
 * Appends with a deadline of its own. After a broken connection the same ids are sent again at the same
 * expectation, which the server takes as one append; not where the expectation is no exact one.
 *
 * @param deadlineMs milliseconds until an append without an answer is an unknown outcome
 */
export const createAppender = (client: EventStoreDBClient, deadlineMs: number): Appender => {
  const gate: Gate = createGate({ room: ROOM, patienceMs: PATIENCE_MS });
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
      await within(work, ms, () => new OutcomeUnknown(`no answer to an append to ${stream}`)),
    );
  };

  const persist = async (stream: string, expected: ExpectedRevision, events: readonly NewEvent[]) => {
    const deadline = performance.now() + deadlineMs;
    let doubt: OutcomeUnknown | null = null;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await send(stream, expected, events, deadline - performance.now());
      } catch (raw) {
        const error = writeError(raw, stream);
        if (error instanceof OutcomeUnknown) doubt = error;
        else if (!(error instanceof StoreUnavailable)) throw error;
        const rest = RETRY_MS * 2 ** Math.min(attempt, 4);
        const again = doubt === null || isExact(expected);
        if (!again || closed || performance.now() + rest >= deadline) throw doubt ?? error;
        await pause(rest);
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
      await gate.idle();
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
