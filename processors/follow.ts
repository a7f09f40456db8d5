import { setTimeout as setTimer } from 'node:timers';
import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';
import type { Logger } from 'pino';
import {
  type EventStore,
  OutcomeUnknown,
  type Position,
  type RecordedEvent,
  StoreBusy,
  StoreUnavailable,
  WrongExpectedRevision,
} from '../event-store/port.ts';
import { lead } from '../platform/leader.ts';
import { inSpan, type SpanOf } from '../platform/spans.ts';

/** Follows events and does one thing about each. */
export interface FollowingProcessor {
  readonly name: string;
  readonly prefixes: readonly string[];
  /** What happens in order; the rest happens side by side. Default: the event's stream. Must not throw. */
  lane?(event: RecordedEvent): string;
  /** Events that have expired and are not deleted yet come too: for who must not miss one, however late it is. */
  readonly includeExpired?: boolean;
  /** How long it waits for company before the next batch, in milliseconds; asked after each. */
  gatherMs?(): number;
  /** Called with the place that it goes on from, before the events after that, each time that it begins. */
  begin?(after: Position | null): Promise<void>;
  /** Must be harmless when the event comes again: it may have been handled up to its last line. */
  handle(event: RecordedEvent): Promise<void>;
  /** The events of a lane that came together, where that is less work. When it fails they are handled one by one. */
  handleAll?(events: readonly RecordedEvent[]): Promise<void>;
}

export interface FollowOptions {
  readonly store: EventStore;
  readonly url: string;
  readonly log: Logger;
  /** Told after each batch, for those who wait for this processor. */
  readonly onPassed: (name: string, position: Position) => void;
  readonly onStopped?: (name: string) => void;
}

const AGAIN_MS = 500;
const AT_ONCE = 16;
/** Places passed without an event are written down so much later. */
const PASSED_MS = 200;
/** What comes meanwhile shares the next batch. */
const GATHER_MS = 50;

/**
 * Runs a processor in one process of all, from its checkpoint on. What the store or the database cannot do
 * just now is tried again; an event that it cannot handle stops this processor, visibly, and nothing else.
 */
export const startProcessor = (
  processor: FollowingProcessor,
  options: FollowOptions,
): { stop(): Promise<void> } =>
  lead({
    name: `processor ${processor.name}`,
    url: options.url,
    log: options.log,
    run: (db, signal) => run(processor, options, db, signal),
  });

const run = async (
  {
    name,
    prefixes,
    lane,
    includeExpired = false,
    gatherMs = () => GATHER_MS,
    begin,
    handle,
    handleAll,
  }: FollowingProcessor,
  { store, log, onPassed, onStopped }: FollowOptions,
  db: pg.ClientBase,
  signal: AbortSignal,
): Promise<void> => {
  // A place that a crash of the server takes back is passed again.
  await db.query('set synchronous_commit to off');
  await db.query('insert into work.processor (name) values ($1) on conflict (name) do nothing', [name]);
  const { rows } = await db.query('select position from work.processor where name = $1', [name]);
  const after = rows[0].position === null ? null : (BigInt(rows[0].position) as Position);
  await begin?.(after);
  let passed = after;
  let saving: Promise<unknown> = Promise.resolve();
  let later: NodeJS.Timeout | null = null;
  const save = (): Promise<unknown> => {
    if (later) clearTimeout(later);
    later = null;
    // One after the other: the session takes one query at a time.
    saving = saving.then(() =>
      db.query({
        name: 'pass',
        // Never back: by now another process may lead, and be further on.
        text: `update work.processor set position = $2, stopped_by = null
               where name = $1 and (position is null or position <= $2)`,
        values: [name, passed],
      }),
    );
    return saving;
  };
  signal.addEventListener('abort', () => later && clearTimeout(later));
  for await (const batch of store.follow({ after, prefixes, includeExpired, signal })) {
    for (const group of inLanes(batch.events, lane)) {
      await Promise.all(group.map(handleLane));
      if (signal.aborted) return;
    }
    passed = batch.position;
    if (batch.events.length > 0) await save();
    else later ??= setTimer(() => void save().catch(() => undefined), PASSED_MS);
    onPassed(name, batch.position);
    await pause(gatherMs(), signal);
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
        if (!isPassing(error)) return await stopAt(event, error);
        log.warn({ processor: name, error: String(error) }, 'trying again');
        await pause(AGAIN_MS, signal);
      }
    }
  }

  /** Stays the leader and does nothing more: another process would only stop at the same event. */
  async function stopAt(event: RecordedEvent, error: unknown): Promise<void> {
    const stoppedBy = `${event.type} at revision ${event.revision} of ${event.stream}: ${error}`;
    log.error({ processor: name, stoppedBy, stack: (error as Error).stack }, 'processor stopped by an event');
    await db.query('update work.processor set stopped_by = $2 where name = $1', [name, stoppedBy]);
    onStopped?.(name);
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
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
  return Array.from({ length: Math.ceil(lanes.length / AT_ONCE) }, (_, index) =>
    lanes.slice(index * AT_ONCE, (index + 1) * AT_ONCE),
  );
};

/** Whether the fault is the moment's and not the event's. */
const isPassing = (error: unknown): boolean =>
  error instanceof StoreBusy ||
  error instanceof StoreUnavailable ||
  error instanceof OutcomeUnknown ||
  error instanceof WrongExpectedRevision ||
  /ECONN|EPIPE|terminat|timeout|57P0|53300|40P01/i.test(
    `${(error as { code?: string }).code ?? ''} ${error}`,
  );

/** Ends early, and quietly, when the signal aborts. */
const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  setTimeout(ms, undefined, { signal }).catch(() => undefined);
