import type { EventStore, Position } from '../event-store/port.ts';
import { createPostgresEventStore } from '../event-store/postgres/store.ts';
import { withSharedHead } from '../event-store/shared-head.ts';
import { createTail, type Tail } from '../event-store/tail.ts';
import { tracedStore } from '../event-store/traced-store.ts';
import type { Clock } from '../platform/clock.ts';
import type { Config } from '../platform/config.ts';
import type { Logger } from '../platform/log.ts';

/** Imported lazily, because the client is slow to load and only used with EVENTSTORE_URL. */
const eventStoreDb = () => import('../event-store/eventstoredb/store.ts');

/** A call to EventStoreDB takes a millisecond of the event loop. */
const HEAD_GAP_MS = 20;

interface StoreOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly hasOtherListeners: () => boolean;
  readonly aroundStore: (store: EventStore) => EventStore;
}

interface OpenedStore {
  readonly store: EventStore;
  readonly tail: Tail;
  readonly logStalls: () => number;
}

/** Opens the configured event store, or the one in PostgreSQL, and its tail. */
export const openStore = async (
  config: Config,
  url: string,
  { clock, log, hasOtherListeners, aroundStore }: StoreOptions,
): Promise<OpenedStore> => {
  const { now } = clock;
  let stalls = 0;
  const onStall = (error: Error, after: Position | null): void => {
    stalls += 1;
    log.warn({ error: error.message, after: String(after) }, 'the log could not be read; retry scheduled');
  };
  const opened = config.EVENTSTORE_URL
    ? (await eventStoreDb()).createEventStoreDb({ url: config.EVENTSTORE_URL, now, onStall })
    : createPostgresEventStore({ url, now, hasOtherListeners, onStall });
  const traced = tracedStore(aroundStore(opened), config.EVENTSTORE_URL ? 'eventstoredb' : 'postgresql');
  const store = withSharedHead(traced, config.EVENTSTORE_URL ? HEAD_GAP_MS : 0);
  const tail = createTail({ store, now, log });
  return { store, tail, logStalls: () => stalls };
};
