import {
  type AllStreamSubscription,
  type RecordedEvent as ClientEvent,
  type EventStoreDBClient,
  type ResolvedEvent,
  START,
} from '@eventstore/db-client';
import { isHidden } from '../hidden.ts';
import type { Batch, FollowOptions, Position } from '../port.ts';
import { approximateBytes } from '../size.ts';
import { eventsOf, isSystemEvent, positionOf, toRecordedEvent } from './recorded.ts';
import { pause } from './timing.ts';

const BATCH_SIZE = 500;
const BATCH_BYTES = 4 * 1_048_576;
/** Events that a subscription holds before they are read: each may have a mebibyte. */
const BUFFERED_EVENTS = 64;
const RETRY_MS = 100;
const MAX_RETRY_MS = 1_000;

export interface FollowParts {
  readonly client: EventStoreDBClient;
  readonly now: () => number;
  /** Told of each subscription that ended by an error. */
  readonly onStall: (error: Error, after: Position | null) => void;
}

/**
 * Follows the whole log and filters here, not in the server: a filtered subscription tells only now and then
 * how far it has come, and who waits for the log's head would wait for ever. A subscription never comes back
 * from an error, so a new one begins after the last event that was handed out.
 */
export async function* follow(
  { client, now, onStall }: FollowParts,
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

/** What one subscription brings, as it comes, until it breaks or the signal says stop. */
async function* arrivals({
  client,
  after,
  size,
  signal,
  onError,
}: Subscribing): AsyncGenerator<ClientEvent[]> {
  const fromPosition = after === null ? START : { commit: after, prepare: after };
  const subscription = client.subscribeToAll(
    { fromPosition },
    { highWaterMark: Math.min(size, BUFFERED_EVENTS) },
  );
  let over = false;
  let wake = (): void => undefined;
  const end = (): void => {
    over = true;
    wake();
  };
  // They stay for good: an error may still come after the last read and would end the process.
  for (const sign of ['error', 'end', 'close']) subscription.on(sign, end);
  subscription.once('error', onError);
  subscription.on('readable', () => wake());
  signal.addEventListener('abort', end);
  try {
    while (!signal.aborted) {
      const events = eventsOf(take(subscription, size));
      if (events.length > 0) yield events;
      else if (over) return;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    signal.removeEventListener('abort', end);
    void subscription.unsubscribe().catch(() => undefined);
  }
}

const take = (subscription: AllStreamSubscription, size: number): ResolvedEvent[] => {
  const taken: ResolvedEvent[] = [];
  let bytes = 0;
  while (taken.length < size && bytes < BATCH_BYTES) {
    const resolved: ResolvedEvent | null = subscription.read();
    if (resolved === null) break;
    taken.push(resolved);
    bytes += resolved.event === undefined ? 0 : approximateBytes(resolved.event);
  }
  return taken;
};
