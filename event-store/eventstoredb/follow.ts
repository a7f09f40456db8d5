import { createWakeup, pause } from '../../platform/clock/waiting.ts';
import {
  type Batch,
  type FollowOptions,
  isHidden,
  type Position,
  type RecordedEvent,
  type StoreOptions,
} from '../port.ts';
import { CallFailed } from './grpc.ts';
import { decodeRead, encodeRead } from './messages.ts';
import type { Nodes } from './nodes.ts';
import { isSystemEvent, READ } from './read.ts';

const BATCH_SIZE = 500;
const BATCH_BYTES = 4 * 1_048_576;
/** Above either of these the server is asked to wait. */
const MAX_BUFFERED_EVENTS = 5_000;
const MAX_BUFFERED_BYTES = 16 * 1_048_576;
/**
 * A backlog arrives event by event, and each batch costs its follower a transaction: until the server says that the subscription has
 * caught up, or where it does not say so (before 23.10), a batch waits as long as each such time brings more.
 */
const GATHER_MS = 10;
/** The server says nothing while nothing happens. */
const WAIT_MS = 60_000;
const CONNECTION_MS = 4_000;
const RETRY_MS = 100;
const MAX_RETRY_MS = 1_000;

type FollowDeps = Required<Pick<StoreOptions, 'now' | 'onStall'>> & { readonly nodes: Nodes };

/**
 * Follows the whole log and filters locally: a filtered subscription reports its position only now and then, so waiting
 * for the log's head could take for ever. A failed subscription cannot recover; a new one starts after the last event.
 */
export async function* follow(
  { nodes, now, onStall }: FollowDeps,
  { after, prefixes, batchSize = BATCH_SIZE, includeExpired = false, signal }: FollowOptions,
): AsyncGenerator<Batch> {
  const wanted = ({ stream }: RecordedEvent): boolean =>
    prefixes === undefined || prefixes.some((prefix) => stream.startsWith(prefix));
  let position = after;
  let failures = 0;
  while (!signal.aborted) {
    try {
      for await (const arrived of arrivals(nodes, position, batchSize, signal)) {
        failures = 0;
        const fresh = arrived.filter((event) => !isSystemEvent(event) && isPast(event, position));
        const last = fresh.at(-1);
        if (!last) continue;
        position = last.position;
        const instant = now();
        const events = fresh.filter(
          (event) => wanted(event) && (includeExpired || !isHidden(event, instant)),
        );
        yield { events, position };
        if (signal.aborted) return;
      }
    } catch (error) {
      if (!(error instanceof CallFailed)) throw error;
      if (!signal.aborted) onStall(error, position);
    }
    await pause(Math.min(RETRY_MS * 2 ** failures, MAX_RETRY_MS), signal);
    failures += 1;
  }
}

const isPast = ({ position: at }: RecordedEvent, position: Position | null): boolean =>
  position === null || at > position;

interface Arrived {
  readonly event: RecordedEvent;
  readonly bytes: number;
}

/** Yields the events of one subscription until the signal aborts. @throws CallFailed when it fails */
async function* arrivals(
  nodes: Nodes,
  after: Position | null,
  size: number,
  signal: AbortSignal,
): AsyncGenerator<RecordedEvent[]> {
  const connection = await nodes.connection('reads', CONNECTION_MS);
  const changed = createWakeup();
  const held: Arrived[] = [];
  let bytes = 0;
  let isBehind = true;
  let ended = null as CallFailed | 'closed' | null;
  const onMessage = (message: Buffer): void => {
    const { event, isCaughtUp } = decodeRead(message);
    if (isCaughtUp) isBehind = false;
    if (event !== null) {
      held.push({ event, bytes: message.length });
      bytes += message.length;
      if (held.length >= MAX_BUFFERED_EVENTS || bytes >= MAX_BUFFERED_BYTES) call.pause();
    }
    changed.wake();
  };
  const onEnd = (failure: CallFailed | null): void => {
    ended = failure ?? 'closed';
    if (failure !== null) nodes.failed(connection, failure);
    changed.wake();
  };
  const request = encodeRead({ stream: null, backwards: false, from: after, count: null });
  const call = connection.call(READ, { onMessage, onEnd }, request);

  const take = (): RecordedEvent[] => {
    let sum = 0;
    const beyond = held.findIndex((one, index) => {
      sum += one.bytes;
      return index >= size || (index > 0 && sum > BATCH_BYTES);
    });
    const taken = held.splice(0, beyond < 0 ? held.length : beyond);
    for (const one of taken) bytes -= one.bytes;
    call.resume();
    return taken.map(({ event }) => event);
  };

  try {
    while (!signal.aborted) {
      for (let before = 0; isBehind && held.length > before && held.length < size; ) {
        before = held.length;
        await pause(GATHER_MS, signal);
      }
      if (held.length > 0) yield take();
      else if (ended instanceof CallFailed) throw ended;
      else if (ended === 'closed') return;
      else await changed.wait(WAIT_MS, signal);
    }
  } finally {
    call.cancel();
  }
}
