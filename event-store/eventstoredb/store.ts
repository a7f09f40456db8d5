import type { EventStore, Position } from '../port.ts';
import { createAppender } from './append.ts';
import { closeClient, createClient } from './client.ts';
import { follow } from './follow.ts';
import { createReader } from './read.ts';
import { createRetention } from './retention.ts';

export interface EventStoreDbOptions {
  /** For example `esdb://localhost:2113?tls=false`, or `esdb://a:2113,b:2113,c:2113` for a cluster. */
  readonly url: string;
  /** Milliseconds since the epoch: what expiry is measured by. */
  readonly now: () => number;
  /** Milliseconds until an append without an answer is an unknown outcome. Default 4,000. */
  readonly deadlineMs?: number;
  /** Told of each subscription that ended and is made again, with the position that it goes on after. */
  readonly onStall?: (error: Error, after: Position | null) => void;
}

/** The event store on EventStoreDB 22.10 or later, one node or a cluster. Connects when it is first used. */
export const createEventStoreDb = ({
  url,
  now,
  deadlineMs = 4_000,
  onStall = () => undefined,
}: EventStoreDbOptions): EventStore => {
  const client = createClient(url);
  const closing = new AbortController();
  const appender = createAppender(client, deadlineMs);
  return {
    append: appender.append,
    ...createReader(client, now, deadlineMs, closing.signal),
    ...createRetention(client, deadlineMs),
    // A tombstone is for ever.
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
};
