import type { Logger } from 'pino';
import type { Position, RecordedEvent } from '../event-store/port.ts';
import type { Tail } from '../event-store/tail.ts';
import type { Lease } from '../platform/leases.ts';
import { inSpan, type SpanOf } from '../platform/spans.ts';
import { isTransient } from '../platform/transient.ts';
import { createWakeup } from '../platform/wakeup.ts';
import type { ProcessorCheckpoints } from './checkpoints.ts';

/** Follows events and does one thing about each. */
export interface FollowingProcessor {
  readonly name: string;
  readonly prefixes: readonly string[];
  /** What happens in order; the rest happens side by side. Default: the event's stream. Must not throw. */
  lane?(event: RecordedEvent): string;
  /** Events that have expired and are not deleted yet come too: for a processor that must not miss one. */
  readonly includeExpired?: boolean;
  /** How long events may wait for company before it gets them, in milliseconds; asked each time. */
  gatherMs?(): number;
  /** Called with the position that it goes on from, before the events after that, each time that it begins. */
  begin?(after: Position | null): Promise<void>;
  /** Must be harmless when the event comes again: it may have been handled up to its last line. */
  handle(event: RecordedEvent): Promise<void>;
  /** The events of a lane that came together, where that is less work. When it fails they are handled one by one. */
  handleAll?(events: readonly RecordedEvent[]): Promise<void>;
}

export interface FollowOptions {
  readonly tail: Tail;
  readonly checkpoints: ProcessorCheckpoints;
  readonly log: Logger;
  /** Told after each batch, for those who wait for this processor. */
  readonly onPassed: (name: string, position: Position) => void;
  readonly onStopped?: (name: string) => void;
  /** Told when it begins, and when it goes on after an event that had stopped it. */
  readonly onRunning?: (name: string) => void;
  /** How long a processor that an event has stopped waits before it tries that event again. Default: a minute. */
  readonly retryStoppedMs?: number;
}

const AGAIN_MS = 500;
const RETRY_STOPPED_MS = 60_000;
const MAX_CONCURRENT_LANES = 16;

/**
 * Runs a processor from its checkpoint on, for as long as this process holds the lease. What the store or the database
 * cannot do just now is tried again; an event that it cannot handle stops this processor, visibly, and nothing else, and
 * is tried again every minute.
 */
export const runProcessor = async (
  processor: FollowingProcessor,
  options: FollowOptions,
  lease: Lease,
  signal: AbortSignal,
): Promise<void> => {
  const { name, prefixes, lane, includeExpired = false, gatherMs, begin, handle, handleAll } = processor;
  const { tail, checkpoints, log, onPassed, onStopped, onRunning } = options;
  const { position: after, stoppedBy: stoppedBefore } = await checkpoints.load(name);
  let isStopped = stoppedBefore !== null;
  if (isStopped) onStopped?.(name);
  else onRunning?.(name);
  await begin?.(after);
  const following = { after, prefixes, includeExpired, signal, ...(gatherMs ? { gatherMs } : {}) };
  for await (const { events, position } of tail.follow(following)) {
    for (const group of inLanes(events, lane)) {
      await Promise.all(group.map(handleLane));
      if (signal.aborted) return;
    }
    if (events.length > 0) await goOn();
    checkpoints.passed(name, position, lease, events.length > 0);
    onPassed(name, position);
  }

  async function handleLane(events: readonly RecordedEvent[]): Promise<void> {
    if (handleAll && events.length > 1) {
      const done = await inSpan(step(name, events), () => handleAll(events)).then(
        () => true,
        () => false,
      );
      if (done) return;
    }
    for (const event of events) await handleOne(event);
  }

  async function handleOne(event: RecordedEvent): Promise<void> {
    while (!signal.aborted) {
      try {
        return await inSpan(step(name, [event]), () => handle(event));
      } catch (error) {
        if (isTransient(error)) {
          log.warn({ processor: name, error: String(error) }, 'event not handled; it is tried again');
          await createWakeup().wait(AGAIN_MS, signal);
        } else await stopAt(event, error);
      }
    }
  }

  /** Does not pass it: another process would only stop at the same event. */
  async function stopAt(event: RecordedEvent, error: unknown): Promise<void> {
    const stoppedBy = `${event.type} at revision ${event.revision} of ${event.stream}: ${error}`;
    log.error(
      { processor: name, stoppedBy, stack: (error as Error).stack },
      'processor stopped by an event; it is tried again in a minute',
    );
    isStopped = true;
    onStopped?.(name);
    await checkpoints.markStopped(name, stoppedBy).catch(() => undefined);
    await createWakeup().wait(options.retryStoppedMs ?? RETRY_STOPPED_MS, signal);
  }

  async function goOn(): Promise<void> {
    if (!isStopped) return;
    await checkpoints.markStopped(name, null);
    isStopped = false;
    log.info({ processor: name }, 'processor goes on after the event that had stopped it');
    onRunning?.(name);
  }
};

/** For what is done about one event among several that are handled at once: it belongs to that one's trace. */
export const traceOf = ({ metadata: { traceparent } }: RecordedEvent): { traceparent?: string } =>
  traceparent === undefined ? {} : { traceparent };

const step = (name: string, events: readonly RecordedEvent[]) => (): SpanOf => ({
  name: `process ${name}`,
  kind: 'consumer',
  attributes: {
    'messaging.operation.type': 'process',
    'messaging.consumer.group.name': name,
    'messaging.batch.message_count': events.length,
  },
  causes: events.map(({ metadata }) => metadata.traceparent),
});

/** Groups of lanes to handle side by side; the events of one lane stay in order. */
const inLanes = (
  events: readonly RecordedEvent[],
  laneOf: (event: RecordedEvent) => string = (event) => event.stream,
): RecordedEvent[][][] => {
  const lanes = [...Map.groupBy(events, laneOf).values()];
  return Array.from({ length: Math.ceil(lanes.length / MAX_CONCURRENT_LANES) }, (_, index) =>
    lanes.slice(index * MAX_CONCURRENT_LANES, (index + 1) * MAX_CONCURRENT_LANES),
  );
};
