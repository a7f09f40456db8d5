import { EventStoreDBClient } from '@eventstore/db-client';
import { endsWithin } from '../../platform/pause.ts';

/** What is reached for inside the client, whose version is pinned for that reason. */
interface Internals {
  supports(): Promise<boolean>;
  handleError(client: unknown, error: Error): Promise<void>;
  getChannel(): Promise<{ close(): void }>;
}

const internals = (client: EventStoreDBClient): Internals => client as unknown as Internals;

const CLOSE_MS = 1_000;

/** A connection that has gone silent is given up after the client's ping interval of 10 s and these 5 s. */
const KEEP_ALIVE_TIMEOUT = 'keepAliveTimeout=5000';

/**
 * A client whose appends are calls of their own. The batched path is a third faster at 128 callers, but it
 * keeps all pending appends of the process in one global map: an error on any connection rejects every
 * append of every client, deadlines are not obeyed, and a late reply throws where nobody can catch it.
 *
 * @param url a connection string such as `esdb://admin:changeit@localhost:2113?tls=false`
 */
export const createClient = (url: string): EventStoreDBClient => {
  const client = EventStoreDBClient.connectionString(withKeepAlive(url));
  const inner = internals(client);
  inner.supports = async () => false;
  const reconnect = inner.handleError;
  // The client closes its channel on such an error. Were that to happen in the microtasks between an
  // append's choice of channel and its call, the call would throw as an unhandled rejection.
  inner.handleError = async (failed, error) => {
    setImmediate(() => void reconnect(failed, error).catch(() => undefined));
  };
  return client;
};

/** Ends all calls and the connection; `dispose` alone would leave the latter open. */
export const closeClient = async (client: EventStoreDBClient): Promise<void> => {
  await endsWithin(client.dispose(), CLOSE_MS).catch(() => undefined);
  // Without a server it goes on looking for one.
  const channel = internals(client).getChannel();
  await endsWithin(
    channel.then((found) => found.close()),
    CLOSE_MS,
  ).catch(() => undefined);
};

const withKeepAlive = (url: string): string =>
  /keepAliveTimeout/i.test(url) ? url : `${url}${url.includes('?') ? '&' : '?'}${KEEP_ALIVE_TIMEOUT}`;
