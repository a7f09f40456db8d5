import type { Logger } from 'pino';
import { inChunks } from '../domain/kernel/chunks.ts';
import type { Position, RecordedEvent } from '../event-store/port.ts';
import type { Tail } from '../event-store/tail.ts';
import { pause } from '../platform/clock/waiting.ts';
import type { Lease } from '../platform/leases/leases.ts';
import { isTransient } from '../platform/postgres/unavailable.ts';
import { inSpan, type SpanOf } from '../platform/telemetry/spans.ts';
import type { ProcessorCheckpoints } from './checkpoints.ts';

/** What a processor follows, known without running it. */
export interface FollowedStreams {
  readonly name: string;
  /** Of the streams whose events it handles. */
  readonly prefixes: readonly string[];
}

/** A processor that follows the log and handles each event. */
export interface FollowingProcessor extends FollowedStreams {
  /** Returns the key within which events stay in order; other keys run concurrently. Default: the stream. Must not throw. */
  lane?(event: RecordedEvent): string;
  /** Includes expired events that are not deleted yet, for a processor that must not miss one. */
  readonly includeExpired?: boolean;
  /** Returns how long an event may wait for a batch, in milliseconds; infinity: as long as the tail itself waits. Called for each batch. */
  gatherMs?(): number;
  /** Called with the checkpoint before the first event of each run. */
  begin?(after: Position | null): Promise<void>;
  /** Must be idempotent: a crash may repeat an event whose handling was already complete. */
  handle(event: RecordedEvent): Promise<void>;
  /** Handles a batch of one lane. If it fails, the events are handled one by one. */
  handleAll?(events: readonly RecordedEvent[]): Promise<void>;
}

export interface FollowOptions {
  readonly tail: Tail;
  readonly checkpoints: ProcessorCheckpoints;
  readonly log: Logger;
  /** Called after each batch with the position passed. */
  readonly onPassed: (name: string, position: Position) => void;
  readonly onStopped?: (name: string) => void;
  /** Called when the processor starts, and when it continues after a poison event. */
  readonly onRunning?: (name: string) => void;
  /** Wait before a poison event is retried, milliseconds. Default: a minute. */
  readonly retryStoppedMs?: number;
}

const RETRY_MS = 500;
const RETRY_STOPPED_MS = 60_000;
const MAX_CONCURRENT_LANES = 16;

/**
 * Runs a processor from its checkpoint while this process holds the lease. Transient errors are retried. A poison event
 * stops this processor alone, sets its metric and is retried every minute.
 */
export const runProcessor = (
  processor: FollowingProcessor,
  options: FollowOptions,
  lease: Lease,
  signal: AbortSignal,
): Promise<void> => new ProcessorRun(processor, options, signal).run(lease);

class ProcessorRun {
  readonly #processor: FollowingProcessor;
  readonly #options: FollowOptions;
  readonly #signal: AbortSignal;
  #isStopped = false;

  constructor(processor: FollowingProcessor, options: FollowOptions, signal: AbortSignal) {
    this.#processor = processor;
    this.#options = options;
    this.#signal = signal;
  }

  async run(lease: Lease): Promise<void> {
    const { name, prefixes, lane, includeExpired = false, gatherMs, begin } = this.#processor;
    const { tail, checkpoints, onPassed, onStopped, onRunning } = this.#options;
    const signal = this.#signal;
    const { position: after, stoppedBy } = await checkpoints.load(name);
    this.#isStopped = stoppedBy !== null;
    if (this.#isStopped) onStopped?.(name);
    else onRunning?.(name);
    await begin?.(after);
    const following = { after, prefixes, includeExpired, signal, ...(gatherMs ? { gatherMs } : {}) };
    for await (const { events, position } of tail.follow(following)) {
      for (const group of inLanes(events, lane)) {
        await Promise.all(group.map((lane) => this.#handleLane(lane)));
        if (signal.aborted) return;
      }
      if (events.length > 0) await this.#goOn();
      checkpoints.passed(name, position, lease, events.length > 0);
      onPassed(name, position);
    }
  }

  async #handleLane(events: readonly RecordedEvent[]): Promise<void> {
    const { name, handleAll } = this.#processor;
    if (handleAll && events.length > 1) {
      const done = await inSpan(step(name, events), () => handleAll(events)).then(
        () => true,
        () => false,
      );
      if (done) return;
    }
    for (const event of events) await this.#handleOne(event);
  }

  async #handleOne(event: RecordedEvent): Promise<void> {
    const { name, handle } = this.#processor;
    while (!this.#signal.aborted) {
      try {
        return await inSpan(step(name, [event]), () => handle(event));
      } catch (error) {
        if (isTransient(error)) {
          this.#options.log.warn(
            { processor: name, error: String(error) },
            'event not handled; retry scheduled',
          );
          await pause(RETRY_MS, this.#signal);
        } else await this.#stopAt(event, error);
      }
    }
  }

  /** Keeps the lease: another process would stop at the same event. */
  async #stopAt(event: RecordedEvent, error: unknown): Promise<void> {
    const { name } = this.#processor;
    const { log, onStopped, checkpoints, retryStoppedMs = RETRY_STOPPED_MS } = this.#options;
    const stoppedBy = `${event.type} at revision ${event.revision} of ${event.stream}: ${error}`;
    log.error(
      { processor: name, stoppedBy, stack: (error as Error).stack },
      'processor stopped by an event; retried in a minute',
    );
    this.#isStopped = true;
    onStopped?.(name);
    await checkpoints.markStopped(name, stoppedBy).catch(() => undefined);
    await pause(retryStoppedMs, this.#signal);
  }

  async #goOn(): Promise<void> {
    if (!this.#isStopped) return;
    const { name } = this.#processor;
    await this.#options.checkpoints.markStopped(name, null);
    this.#isStopped = false;
    this.#options.log.info({ processor: name }, 'processor continues after the event that had stopped it');
    this.#options.onRunning?.(name);
  }
}

/** Returns the event's own trace parent, for events that are handled as one batch. */
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

const inLanes = (
  events: readonly RecordedEvent[],
  laneOf: (event: RecordedEvent) => string = (event) => event.stream,
): RecordedEvent[][][] => {
  const lanes = [...Map.groupBy(events, laneOf).values()];
  return inChunks(lanes, MAX_CONCURRENT_LANES);
};
