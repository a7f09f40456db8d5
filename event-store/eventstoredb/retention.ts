import { randomUUID } from 'node:crypto';
import {
  AccessDeniedError,
  type EventStoreDBClient,
  NotLeaderError,
  StreamDeletedError,
  WrongExpectedVersionError,
} from '@eventstore/db-client';
import { pause, within } from '../../platform/clock/waiting.ts';
import {
  type EventStore,
  OutcomeUnknown,
  type Revision,
  StoreUnavailable,
  StreamExpired,
  WrongExpectedRevision,
} from '../port.ts';
import type { Appender } from './append.ts';
import type { Reader } from './read.ts';

type Retention = Pick<EventStore, 'expire' | 'truncateBefore'>;

interface RetentionDeps {
  readonly client: () => EventStoreDBClient;
  readonly appender: Appender;
  readonly lastEvent: Reader['lastEvent'];
  readonly deadlineMs: number;
}

const RETRY_MS = 50;

/** Creates tombstones and truncations. Both are idempotent, so callers repeat them after an unknown outcome. */
export function createRetention({ client, appender, lastEvent, deadlineMs }: RetentionDeps): Retention {
  const expire = async (stream: string, last: Revision): Promise<void> => {
    const options = { requiresLeader: true, deadline: deadlineMs, expectedRevision: BigInt(last) };
    try {
      await within(
        client().tombstoneStream(stream, options),
        deadlineMs,
        () => new OutcomeUnknown('no answer in time'),
      );
    } catch (raw) {
      const error = tombstoneError(raw, stream);
      if (error instanceof StreamExpired) return;
      if (!(error instanceof WrongExpectedRevision)) throw error;
      if (error.actual === null) return; // the stream does not exist
      if (error.actual > last) throw error;
      await expire(stream, error.actual);
    }
  };

  const truncate = async (stream: string, revision: Revision, deadline: number): Promise<void> => {
    const metadataStream = `$$${stream}`;
    const [last, metadata] = await Promise.all([lastEvent(stream), lastEvent(metadataStream)]);
    if (!last) return; // the stream does not exist or is empty
    const settings = (metadata?.data ?? {}) as { $tb?: number };
    // A limit beyond the stream's end would hide future events, and truncation cannot be undone.
    const before = Math.min(revision, last.revision + 1);
    if (before <= (settings.$tb ?? 0)) return;
    const event = {
      id: randomUUID(),
      type: '$metadata',
      data: JSON.stringify({ ...settings, $tb: before }),
      metadata: '',
    };
    try {
      await appender.appendSerialised(metadataStream, metadata?.revision ?? 'no_stream', [event]);
    } catch (error) {
      if (!(error instanceof WrongExpectedRevision) || performance.now() > deadline) throw error;
      // Another process changed the metadata, perhaps in an event that is not replicated yet.
      await pause(RETRY_MS);
      await truncate(stream, revision, deadline);
    }
  };

  return {
    expire,
    truncateBefore: async (stream, revision) => {
      try {
        await truncate(stream, revision, performance.now() + deadlineMs);
      } catch (error) {
        if (!(error instanceof StreamExpired)) throw error;
      }
    },
  };
}

/** Errors whose text alone shows that the request was never processed. */
const NEVER_TAKEN_UP =
  /No connection established|Name resolution failed|Channel closed before call started|Channel has been shut down|Failed to discover|Server Is Not Ready|No leader info available|waiting for (name resolution|metadata filters|LB pick)/i;

/** Maps an error of the client. Unless the deletion is known to have been rejected, its outcome is unknown. */
function tombstoneError(error: unknown, stream: string): Error {
  if (error instanceof OutcomeUnknown) return error;
  if (error instanceof WrongExpectedVersionError) {
    // For a missing stream the server reports -1.
    const actual = Number(error.actualVersion);
    return new WrongExpectedRevision(stream, actual >= 0 ? actual : null);
  }
  if (error instanceof StreamDeletedError) return new StreamExpired(stream);
  const text = String(error);
  const refused = error instanceof NotLeaderError || error instanceof AccessDeniedError;
  if (refused || NEVER_TAKEN_UP.test(text)) return new StoreUnavailable(text, { cause: error });
  return new OutcomeUnknown(text, { cause: error });
}
