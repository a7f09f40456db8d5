import {
  BACKWARDS,
  END,
  type EventStoreDBClient,
  jsonEvent,
  NO_STREAM,
  StreamDeletedError,
  StreamNotFoundError,
  WrongExpectedVersionError,
} from '@eventstore/db-client';
import {
  type EventStore,
  OutcomeUnknown,
  type Revision,
  StreamExpired,
  WrongExpectedRevision,
} from '../port.ts';
import { writeError } from './errors.ts';
import { pause, within } from './timing.ts';

type Retention = Pick<EventStore, 'expire' | 'truncateBefore'>;

const AGAIN_MS = 50;

/** Tombstones and truncation. Both may be repeated, so after an unknown outcome the caller simply does. */
export const createRetention = (client: EventStoreDBClient, deadlineMs: number): Retention => {
  const call = { requiresLeader: true, deadline: deadlineMs };
  const timed = <T>(work: Promise<T>): Promise<T> =>
    within(work, deadlineMs, () => new OutcomeUnknown('no answer in time'));

  const expire = async (stream: string, last: Revision): Promise<void> => {
    try {
      await timed(client.tombstoneStream(stream, { ...call, expectedRevision: BigInt(last) }));
    } catch (raw) {
      const error = writeError(raw, stream);
      if (error instanceof StreamExpired) return;
      if (!(error instanceof WrongExpectedRevision)) throw error;
      if (error.actual === null) return; // there is no such stream
      if (error.actual > last) throw error;
      await expire(stream, error.actual);
    }
  };

  const lastEvent = async (stream: string) => {
    const read = { direction: BACKWARDS, fromRevision: END, maxCount: 1, requiresLeader: true } as const;
    try {
      const [resolved] = await client.readStream(stream, read).toArray();
      return resolved?.event;
    } catch (error) {
      if (error instanceof StreamNotFoundError || error instanceof StreamDeletedError) return undefined;
      throw error;
    }
  };

  const truncate = async (stream: string, revision: Revision, deadline: number): Promise<void> => {
    const [last, metadata] = await Promise.all([lastEvent(stream), lastEvent(`$$${stream}`)]);
    if (!last) return; // no stream, or nothing left of it
    const settings = (metadata?.data ?? {}) as { $tb?: number };
    // Beyond its end the stream would hide what is yet to come; and what is truncated never comes back.
    const before = Math.min(revision, Number(last.revision) + 1);
    if (before <= (settings.$tb ?? 0)) return;
    const event = jsonEvent({ type: '$metadata', data: { ...settings, $tb: before } });
    const expectedRevision = metadata ? metadata.revision : NO_STREAM;
    try {
      await client.appendToStream(`$$${stream}`, event, { ...call, expectedRevision });
    } catch (error) {
      if (!(error instanceof WrongExpectedVersionError) || performance.now() > deadline) throw error;
      // Someone else has changed the settings meanwhile, perhaps in an event that is not replicated yet.
      await pause(AGAIN_MS);
      await truncate(stream, revision, deadline);
    }
  };

  const truncateBefore = async (stream: string, revision: Revision): Promise<void> => {
    try {
      await timed(truncate(stream, revision, performance.now() + deadlineMs));
    } catch (raw) {
      const error = writeError(raw, stream);
      if (!(error instanceof StreamExpired)) throw error;
    }
  };

  return { expire, truncateBefore };
};
