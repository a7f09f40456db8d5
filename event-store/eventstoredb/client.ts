import {
  AccessDeniedError,
  type RecordedEvent as ClientEvent,
  EventStoreDBClient,
  MaxAppendSizeExceededError,
  NotLeaderError,
  type ResolvedEvent,
  StreamDeletedError,
  WrongExpectedVersionError,
} from '@eventstore/db-client';
import { endsWithin } from '../../platform/clock/waiting.ts';
import {
  AppendTooLarge,
  type EventMetadata,
  OutcomeUnknown,
  type Position,
  type RecordedEvent,
  StoreBusy,
  StoreUnavailable,
  StreamExpired,
  WrongExpectedRevision,
} from '../port.ts';

/** Uses the commit position alone, because each append of this port is its own transaction. */
export function positionOf(event: ClientEvent): Position {
  if (!event.position) throw new Error(`the server gave no position for the event ${event.id}`);
  return event.position.commit as Position;
}

export const toRecordedEvent = (event: ClientEvent): RecordedEvent => ({
  position: positionOf(event),
  stream: event.streamId,
  revision: Number(event.revision),
  id: event.id,
  type: event.type,
  data: event.data as object,
  metadata: event.metadata as unknown as EventMetadata,
});

/** Returns whether the server wrote the event: stream metadata, tombstones, statistics. */
export const isSystemEvent = ({ type, streamId }: ClientEvent): boolean =>
  type.startsWith('$') || streamId.startsWith('$');

/** Returns the events of a read; links are not resolved, so each result has one. */
export const eventsOf = (resolved: readonly ResolvedEvent[]): ClientEvent[] =>
  resolved.flatMap(({ event }) => (event ? [event] : []));

/** Errors whose text alone shows that the request was never processed. */
const NEVER_TAKEN_UP =
  /No connection established|Name resolution failed|Channel closed before call started|Channel has been shut down|Failed to discover|Server Is Not Ready|No leader info available|waiting for (name resolution|metadata filters|LB pick)/i;

/** Maps a client error of a write. Unless the write is known to have been rejected, its outcome is unknown. */
export function writeError(error: unknown, stream: string): Error {
  if (error instanceof OutcomeUnknown) return error;
  if (error instanceof WrongExpectedVersionError) {
    // For a missing stream the server reports 'no_stream' after an append and -1 after a tombstone.
    const actual = Number(error.actualVersion);
    return new WrongExpectedRevision(stream, actual >= 0 ? actual : null);
  }
  if (error instanceof StreamDeletedError) return new StreamExpired(stream);
  if (error instanceof MaxAppendSizeExceededError) return new AppendTooLarge(stream);
  const text = String(error);
  if (/Server Is Too Busy/.test(text)) return new StoreBusy(text, { cause: error });
  const refused = error instanceof NotLeaderError || error instanceof AccessDeniedError;
  if (refused || NEVER_TAKEN_UP.test(text)) return new StoreUnavailable(text, { cause: error });
  return new OutcomeUnknown(text, { cause: error });
}

/** Maps a client error of a read, which is always safe to retry. */
export const readError = (error: unknown): StoreUnavailable =>
  error instanceof StoreUnavailable ? error : new StoreUnavailable(String(error), { cause: error });

/** Private members of the client that are used here; its version is pinned because of them. */
interface Internals {
  supports(): Promise<boolean>;
  handleError(client: unknown, error: Error): Promise<void>;
  getChannel(): Promise<{ close(): void }>;
}

const internals = (client: EventStoreDBClient): Internals => client as unknown as Internals;

const CLOSE_MS = 1_000;

/** Closes a silent connection after the client's ping interval of 10 s plus these 5 s. */
const KEEP_ALIVE_TIMEOUT = 'keepAliveTimeout=5000';

/**
 * Creates a client that sends each append as a separate call. Batched appends are a third faster at 128 callers, but the client
 * keeps them in one global map: an error on any connection rejects all appends of all clients, deadlines are ignored, and
 * a late reply throws an uncatchable error.
 * @param url a connection string such as `esdb://admin:changeit@localhost:2113?tls=false`
 */
export function createClient(url: string): EventStoreDBClient {
  const client = EventStoreDBClient.connectionString(withKeepAlive(url));
  const inner = internals(client);
  inner.supports = async () => false;
  const reconnect = inner.handleError;
  // The client closes its channel on such an error. In the microtasks between an append's choice of channel and its
  // call, that would cause an unhandled rejection.
  inner.handleError = async (failed, error) => {
    setImmediate(() => void reconnect(failed, error).catch(() => undefined));
  };
  return client;
}

/** Ends all calls and the connection, which `dispose` alone leaves open. */
export async function closeClient(client: EventStoreDBClient): Promise<void> {
  await endsWithin(client.dispose(), CLOSE_MS).catch(() => undefined);
  // Without a server the client keeps looking for one, so this needs a time limit too.
  const channel = internals(client).getChannel();
  await endsWithin(
    channel.then((found) => found.close()),
    CLOSE_MS,
  ).catch(() => undefined);
}

const withKeepAlive = (url: string): string =>
  /keepAliveTimeout/i.test(url) ? url : `${url}${url.includes('?') ? '&' : '?'}${KEEP_ALIVE_TIMEOUT}`;
