import { EventStoreDBClient } from '@eventstore/db-client';
import { endsWithin } from '../../platform/pause.ts';

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
export const createClient = (url: string): EventStoreDBClient => {
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
};

/** Ends all calls and the connection, which `dispose` alone leaves open. */
export const closeClient = async (client: EventStoreDBClient): Promise<void> => {
  await endsWithin(client.dispose(), CLOSE_MS).catch(() => undefined);
  // Without a server the client keeps looking for one, so this needs a time limit too.
  const channel = internals(client).getChannel();
  await endsWithin(
    channel.then((found) => found.close()),
    CLOSE_MS,
  ).catch(() => undefined);
};

const withKeepAlive = (url: string): string =>
  /keepAliveTimeout/i.test(url) ? url : `${url}${url.includes('?') ? '&' : '?'}${KEEP_ALIVE_TIMEOUT}`;
