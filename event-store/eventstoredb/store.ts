import type { EventStore, StoreOptions } from '../port.ts';
import { createAppender } from './append.ts';
import { closeClient, createClient } from './client.ts';
import { follow } from './follow.ts';
import { createReader } from './read.ts';
import { createRetention } from './retention.ts';

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
  const client = createClient(url);
  const closing = new AbortController();
  const appender = createAppender(client, deadlineMs);
  return {
    append: appender.append,
    ...createReader(client, now, deadlineMs, closing.signal),
    ...createRetention(client, deadlineMs),
    // A tombstone cannot be removed.
    forgetNames: async () => 0,
    follow: (options) =>
      follow(
        { client, now, onStall },
        { ...options, signal: AbortSignal.any([options.signal, closing.signal]) },
      ),
    close: async () => {
      closing.abort();
      await appender.close();
      await closeClient(client);
    },
  };
}
