import { EventStoreDBClient } from '@eventstore/db-client';
import type { EventStore, StoreOptions } from '../port.ts';
import { createAppender } from './append.ts';
import { parseConnectionString } from './connection-string.ts';
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
  const nodes = createNodes(parseConnectionString(url));
  const closing = new AbortController();
  const appender = createAppender(nodes, deadlineMs);
  const { lastEvent, ...reader } = createReader(nodes, now, deadlineMs);
  // For deletions alone. It connects with the first one.
  let client: EventStoreDBClient | null = null;
  const rareClient = (): EventStoreDBClient => {
    client ??= EventStoreDBClient.connectionString(url);
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
