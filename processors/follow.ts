import type pg from 'pg';
import type { Logger } from 'pino';
import { inChunks } from '../domain/kernel/chunks.ts';
import type { Position, RecordedEvent } from '../event-store/port.ts';
import type { Tail } from '../event-store/tail.ts';
import { pause } from '../platform/clock/waiting.ts';
import type { Lease } from '../platform/leases/leases.ts';
import { isTransient } from '../platform/postgres/unavailable.ts';
import { inSpan, type SpanOf } from '../platform/telemetry/spans.ts';

interface Passed {
  readonly position: Position;
  readonly lease: Lease;
}

/** `handled` bounds how many events are handled again after a crash. */
const SAVE_MS = { handled: 500, passed: 1_000 } as const;

/** Creates the checkpoints of all processors of a process, saved together in one debounced statement. */
export function createProcessorCheckpoints(pool: pg.Pool) {
  const waiting = new Map<string, Passed>();
  let timer: NodeJS.Timeout | null = null;
  let dueAt = Number.POSITIVE_INFINITY;

  const flush = async (): Promise<void> => {
    if (timer) clearTimeout(timer);
    timer = null;
    dueAt = Number.POSITIVE_INFINITY;
    const batch = [...waiting];
    waiting.clear();
    if (batch.length === 0) return;
    try {
      await pool.query({ name: 'save_processor_checkpoints', text: SAVE, values: valuesOf(batch) });
    } catch (error) {
      // An idle processor schedules no further save, and other processes wait for the saved position.
      for (const [name, passed] of batch) if (!waiting.has(name)) waiting.set(name, passed);
      flushIn(SAVE_MS.passed);
      throw error;
    }
  };

  const flushIn = (ms: number): void => {
    if (performance.now() + ms >= dueAt) return;
    dueAt = performance.now() + ms;
    if (timer) clearTimeout(timer);
    // A failed save is retried by `flush`; a crash before it only repeats idempotent work.
    timer = setTimeout(() => void flush().catch(() => undefined), ms).unref();
  };

  return {
    load: async (name: string): Promise<{ position: Position | null; stoppedBy: string | null }> => {
      await pool.query('insert into work.processor (name) values ($1) on conflict (name) do nothing', [name]);
      const { rows } = await pool.query('select position, stopped_by from work.processor where name = $1', [
        name,
      ]);
      const { position, stopped_by } = rows[0];
      return { position: position === null ? null : (BigInt(position) as Position), stoppedBy: stopped_by };
    },
    /** Schedules the save of a position. `handled`: the processor handled events on the way. */
    passed: (name: string, position: Position, lease: Lease, handled: boolean): void => {
      waiting.set(name, { position, lease });
      flushIn(handled ? SAVE_MS.handled : SAVE_MS.passed);
    },
    markStopped: async (name: string, stoppedBy: string | null): Promise<void> => {
      await pool.query('update work.processor set stopped_by = $2 where name = $1', [name, stoppedBy]);
    },
    flush,
  };
}

const valuesOf = (batch: readonly (readonly [string, Passed])[]): unknown[] => [
  batch.map(([name]) => name),
  batch.map(([, { position }]) => position),
  batch.map(([, { lease }]) => lease.name),
  batch.map(([, { lease }]) => lease.number),
  batch.map(([, { lease }]) => lease.processId),
];

/** Requires the lease and never moves back: another process may have taken the lease and advanced further. */
const SAVE = `
  update work.processor p set position = s.position
  from unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::uuid[]) as s (name, position, lease, number, holder)
  join work.lease l on l.name = s.lease and l.number = s.number and l.process_id = s.holder
  where p.name = s.name and (p.position is null or p.position < s.position)`;

/** What a processor follows, known without running it. */
export interface FollowedStreams {
  readonly name: string;
  /** Prefixes of the streams whose events it handles. */
  readonly prefixes: readonly string[];
}

/** A processor that follows the log and handles each event. */
export interface FollowingProcessor extends FollowedStreams {
  /** Returns the key within which events stay in order; other keys run concurrently. Default: the stream. Must not throw. */
  lane?(event: RecordedEvent): string;
  /** Includes expired events that are not deleted yet, for a processor that must not miss one. */
  readonly includeExpired?: boolean;
  /** Returns how long an event may wait for a batch while no caller waits for it, in milliseconds. Called for each batch. */
  gatherMs?(): number;
  /** Called when this process begins to lead it: others may have handled events since it last did. */
  begin?(): void;
  /** Must be idempotent: a crash may repeat an event whose handling was already complete. */
  handle(event: RecordedEvent): Promise<void>;
  /** Handles a batch of one lane. If it fails, the events are handled one by one. */
  handleAll?(events: readonly RecordedEvent[]): Promise<void>;
}

export interface FollowOptions {
  readonly tail: Tail;
  readonly checkpoints: ReturnType<typeof createProcessorCheckpoints>;
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
    const { name, prefixes, lane, includeExpired = false, gatherMs } = this.#processor;
    const { tail, checkpoints, onPassed, onStopped, onRunning } = this.#options;
    const signal = this.#signal;
    const { position: after, stoppedBy } = await checkpoints.load(name);
    this.#isStopped = stoppedBy !== null;
    if (this.#isStopped) onStopped?.(name);
    else onRunning?.(name);
    this.#processor.begin?.();
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

function inLanes(
  events: readonly RecordedEvent[],
  laneOf: (event: RecordedEvent) => string = (event) => event.stream,
): RecordedEvent[][][] {
  const lanes = [...Map.groupBy(events, laneOf).values()];
  return inChunks(lanes, MAX_CONCURRENT_LANES);
}
