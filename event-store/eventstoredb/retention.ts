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
import { pause, within } from '../../platform/clock/waiting.ts';
import {
  type EventStore,
  OutcomeUnknown,
  type Revision,
  StreamExpired,
  WrongExpectedRevision,
} from '../port.ts';
import { writeError } from './client.ts';

type Retention = Pick<EventStore, 'expire' | 'truncateBefore'>;

const RETRY_MS = 50;

/** Creates tombstones and truncations. Both are idempotent, so callers repeat them after an unknown outcome. */
export function createRetention(client: EventStoreDBClient, deadlineMs: number): Retention {
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
      if (error.actual === null) return; // the stream does not exist
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
    if (!last) return; // the stream does not exist or is empty
    const settings = (metadata?.data ?? {}) as { $tb?: number };
    // A limit beyond the stream's end would hide future events, and truncation cannot be undone.
    const before = Math.min(revision, Number(last.revision) + 1);
    if (before <= (settings.$tb ?? 0)) return;
    const event = jsonEvent({ type: '$metadata', data: { ...settings, $tb: before } });
    const expectedRevision = metadata ? metadata.revision : NO_STREAM;
    try {
      await client.appendToStream(`$$${stream}`, event, { ...call, expectedRevision });
    } catch (error) {
      if (!(error instanceof WrongExpectedVersionError) || performance.now() > deadline) throw error;
      // Another process changed the metadata, perhaps in an event that is not replicated yet.
      await pause(RETRY_MS);
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
}
