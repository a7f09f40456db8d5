import { EventStoreDBClient } from '@eventstore/db-client';
import type { EventStore, StoreOptions } from '../port.ts';
import { createAppender } from './append.ts';
import { type ConnectionSettings, parseConnectionString } from './connection-string.ts';
import { follow } from './follow.ts';
import { createNodes } from './nodes.ts';
import { createReader } from './read.ts';
import { createRetention } from './retention.ts';

/** The node commits what is under way together, every 2 ms or so. */
const CONCURRENT_COMMITS = 4;

/**
 * Creates an event store on EventStoreDB 22.10 or later, one node or a cluster. Connects on first use. `url`: for example
 * `esdb://localhost:2113?tls=false`, or `esdb://a:2113,b:2113,c:2113` for a cluster.
 */
export function createEventStoreDb({
  url,
  now,
  deadlineMs = 4_000,
  onStall = () => undefined,
}: StoreOptions): EventStore {
  const settings = parseConnectionString(url);
  const nodes = createNodes(settings);
  const closing = new AbortController();
  const appender = createAppender(nodes, deadlineMs);
  const { lastEvent, ...reader } = createReader(nodes, now, deadlineMs);
  // For deletions alone. It connects with the first one.
  let client: EventStoreDBClient | null = null;
  const rareClient = (): EventStoreDBClient => {
    client ??= clientOf(settings);
    return client;
  };
  return {
    concurrentCommits: CONCURRENT_COMMITS,
    append: appender.append,
    ...reader,
    ...createRetention({ client: rareClient, appender, lastEvent, deadlineMs }),
    // A tombstone cannot be removed.
    forgetNames: async () => 0,
    follow: (options) =>
      follow(
        { nodes, now, onStall },
        { ...options, signal: AbortSignal.any([options.signal, closing.signal]) },
      ),
    close: async () => {
      closing.abort();
      await appender.close();
      nodes.close();
      void client?.dispose().catch(() => undefined);
    },
  };
}

/** The client's own parser prints a string with an option that it does not know, and its password. */
function clientOf({
  endpoints,
  discover,
  tls,
  tlsOptions,
  credentials,
}: ConnectionSettings): EventStoreDBClient {
  const [first = { address: '', port: 0 }, ...others] = endpoints.map(({ host, port }) => ({
    address: host.includes(':') ? `[${host}]` : host,
    port,
  }));
  const { ca, cert, key, rejectUnauthorized } = tlsOptions;
  const channel = {
    insecure: !tls,
    rootCertificate: ca,
    userCertFile: cert,
    userKeyFile: key,
    verifyOptions: { rejectUnauthorized },
  } as ConstructorParameters<typeof EventStoreDBClient>[1];
  const user = credentials ?? undefined;
  if (discover) return new EventStoreDBClient({ discover: first }, channel, user);
  if (others.length > 0) return new EventStoreDBClient({ endpoints: [first, ...others] }, channel, user);
  return new EventStoreDBClient({ endpoint: first }, channel, user);
}
