import {
  type AllStreamSubscription,
  type RecordedEvent as ClientEvent,
  type EventStoreDBClient,
  type ResolvedEvent,
  START,
} from '@eventstore/db-client';
import { pause } from '../../platform/clock/waiting.ts';
import {
  approximateBytes,
  type Batch,
  type FollowOptions,
  isHidden,
  type Position,
  type StoreOptions,
} from '../port.ts';
import { isSystemEvent, positionOf, toRecordedEvent } from './client.ts';

const BATCH_SIZE = 500;
const BATCH_BYTES = 4 * 1_048_576;
/** Size of the client's own buffer. */
const READ_AHEAD_EVENTS = 64;
const MAX_BUFFERED_EVENTS = 5_000;
const MAX_BUFFERED_BYTES = 16 * 1_048_576;
/**
 * A backlog arrives event by event, and each batch costs its follower a transaction: until the server says that the subscription has
 * caught up, or where it does not say so (before 23.10), a batch waits as long as each such time brings more.
 */
const GATHER_MS = 10;
const RETRY_MS = 100;
const MAX_RETRY_MS = 1_000;

type FollowDeps = Required<Pick<StoreOptions, 'now' | 'onStall'>> & { readonly client: EventStoreDBClient };

/**
 * Follows the whole log and filters locally: a filtered subscription reports its position only now and then, so waiting
 * for the log's head could take for ever. A failed subscription cannot recover; a new one starts after the last event.
 */
export async function* follow(
  { client, now, onStall }: FollowDeps,
  { after, prefixes, batchSize = BATCH_SIZE, includeExpired = false, signal }: FollowOptions,
): AsyncGenerator<Batch> {
  const wanted = ({ streamId }: ClientEvent): boolean =>
    prefixes === undefined || prefixes.some((prefix) => streamId.startsWith(prefix));
  let position = after;
  const onError = (error: Error): void => {
    if (!signal.aborted) onStall(error, position);
  };
  let failures = 0;
  while (!signal.aborted) {
    for await (const arrived of arrivals({ client, after: position, size: batchSize, signal, onError })) {
      failures = 0;
      const fresh = arrived.filter((event) => !isSystemEvent(event) && isPast(event, position));
      const last = fresh.at(-1);
      if (!last) continue;
      position = positionOf(last);
      const instant = now();
      const events = fresh.filter(wanted).map(toRecordedEvent);
      yield { events: events.filter((event) => includeExpired || !isHidden(event, instant)), position };
      if (signal.aborted) return;
    }
    await pause(Math.min(RETRY_MS * 2 ** failures, MAX_RETRY_MS), signal);
    failures += 1;
  }
}

const isPast = (event: ClientEvent, position: Position | null): boolean =>
  position === null || positionOf(event) > position;

interface Subscribing {
  readonly client: EventStoreDBClient;
  readonly after: Position | null;
  readonly size: number;
  readonly signal: AbortSignal;
  readonly onError: (error: Error) => void;
}

/**
 * Yields the events of one subscription until it fails or the signal aborts. Events are buffered here, because the server
 * drops a subscription as soon as 32 new events wait for it.
 */
async function* arrivals({
  client,
  after,
  size,
  signal,
  onError,
}: Subscribing): AsyncGenerator<ClientEvent[]> {
  const fromPosition = after === null ? START : { commit: after, prepare: after };
  const subscription = client.subscribeToAll({ fromPosition }, { highWaterMark: READ_AHEAD_EVENTS });
  const buffer = createBuffer(subscription);
  let hasEnded = false;
  let isBehind = true;
  let wake = (): void => undefined;
  const end = (): void => {
    hasEnded = true;
    wake();
  };
  // Never removed: an error after the last read would otherwise end the process.
  for (const sign of ['error', 'end', 'close']) subscription.on(sign, end);
  subscription.once('error', onError);
  subscription.once('caughtUp', () => {
    isBehind = false;
  });
  subscription.on('readable', () => {
    buffer.fill();
    wake();
  });
  signal.addEventListener('abort', end);
  try {
    while (!signal.aborted) {
      for (let before = 0; isBehind && buffer.count() > before && buffer.count() < size; ) {
        before = buffer.count();
        await pause(GATHER_MS, signal);
      }
      const events = buffer.take(size);
      if (events.length > 0) yield events;
      else if (hasEnded) return;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    signal.removeEventListener('abort', end);
    void subscription.unsubscribe().catch(() => undefined);
  }
}

/** Buffers a subscription within bounds, because each event may have a mebibyte. */
function createBuffer(subscription: Pick<AllStreamSubscription, 'read'>) {
  let held: { readonly event: ClientEvent; readonly bytes: number }[] = [];
  let bytes = 0;
  const fill = (): void => {
    while (held.length < MAX_BUFFERED_EVENTS && bytes < MAX_BUFFERED_BYTES) {
      const resolved: ResolvedEvent | null = subscription.read();
      if (resolved === null) return;
      const { event } = resolved;
      if (event === undefined) continue;
      const size = approximateBytes(event);
      held.push({ event, bytes: size });
      bytes += size;
    }
  };
  return {
    fill,
    count: (): number => held.length,
    /** Takes at most `size` events and `BATCH_BYTES`. */
    take: (size: number): ClientEvent[] => {
      fill();
      let sum = 0;
      const beyond = held.findIndex((one, index) => {
        sum += one.bytes;
        return index >= size || (index > 0 && sum > BATCH_BYTES);
      });
      const taken = held.slice(0, beyond < 0 ? held.length : beyond);
      held = held.slice(taken.length);
      bytes -= taken.reduce((all, one) => all + one.bytes, 0);
      return taken.map(({ event }) => event);
    },
  };
}
