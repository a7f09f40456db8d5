import type pg from 'pg';
import type { Logger } from 'pino';
import type { Batch, EventStore, Position } from '../event-store/port.ts';
import { createAlarm } from '../platform/alarm.ts';
import { lead } from '../platform/leader.ts';
import { inSpan, type SpanOf } from '../platform/spans.ts';
import {
  type Checkpoint,
  CheckpointMoved,
  commitSteps,
  loadCheckpoints,
  ProjectionFailed,
  type Step,
} from './checkpoints.ts';
import type { Progress } from './progress.ts';
import type { Projection } from './projection.ts';

export interface ProjectionRunnerOptions {
  readonly store: EventStore;
  readonly url: string;
  readonly projections: readonly Projection[];
  readonly progress: Progress;
  readonly log: Logger;
  /** Told after each commit: the newest event's time (ISO) and place, for the lag metric. */
  readonly onApplied?: (names: readonly string[], lastEventAt: string | null) => void;
  readonly onStopped?: (name: string) => void;
  /** Told when this process begins to run them, the ones that were stopped included. */
  readonly onRunning?: (names: readonly string[]) => void;
}

/**
 * Runs all projections in one pass under one leader over all processes; another process takes over within
 * seconds. A poison event stops its own projection, the others go on.
 */
export const startProjections = (options: ProjectionRunnerOptions): { stop(): Promise<void> } =>
  lead({
    name: 'projections',
    url: options.url,
    log: options.log,
    run: (db, signal) => runAsLeader(options, db, signal),
  });

const runAsLeader = async (
  options: ProjectionRunnerOptions,
  db: pg.ClientBase,
  signal: AbortSignal,
): Promise<void> => {
  const { store, projections, log, progress } = options;
  // A crash of the server may take back the last rows, and their checkpoints with them: they are applied again.
  // Plans made on small tables must not read large ones from end to end.
  await db.query('set search_path to read; set synchronous_commit to off; set enable_seqscan to off');
  const checkpoints = await loadCheckpoints(
    db,
    projections.map((projection) => projection.name),
  );
  const running = new Map(projections.map((projection) => [projection.name, projection]));
  options.onRunning?.([...running.keys()]);
  // Under load a transaction for each handful of events would cost more than the events: a small batch is followed
  // by a short pause, unless somebody waits for what comes next (docs/adr/0002).
  const alarm = createAlarm();
  const unsubscribe = progress.onWanted(alarm.ring);
  try {
    const following = { after: earliest(checkpoints), includeExpired: true, signal };
    for await (const batch of store.follow(following)) {
      await inSpan(spanOfBatch(batch), () => applyBatch(options, db, running, checkpoints, batch));
      const names = [...running.keys()];
      progress.advance(Object.fromEntries(names.map((name) => [name, batch.position])));
      options.onApplied?.(names, batch.events.at(-1)?.metadata.at ?? null);
      if (running.size < projections.length) await noticeMended(db, checkpoints, running);
      if (batch.events.length < FEW) await alarm.wait(GATHER_MS, signal);
    }
  } catch (error) {
    if (!(error instanceof CheckpointMoved)) throw error;
    log.info('checkpoints were moved by a rebuild or another leader: starting again from them');
  } finally {
    unsubscribe();
  }
};

const spanOfBatch =
  ({ events }: Batch) =>
  (): SpanOf => ({
    name: 'process projections',
    kind: 'consumer',
    attributes: {
      'messaging.operation.type': 'process',
      'messaging.consumer.group.name': 'projections',
      'messaging.batch.message_count': events.length,
    },
    causes: events.map(({ metadata }) => metadata.traceparent),
  });

const FEW = 100;
const GATHER_MS = 50;

/** A rebuild takes a projection past the event that stopped it: then all start again from their checkpoints. */
const noticeMended = async (
  db: pg.ClientBase,
  checkpoints: Map<string, Checkpoint>,
  running: Map<string, Projection>,
): Promise<void> => {
  const stopped = [...checkpoints.keys()].filter((name) => !running.has(name));
  const { rows } = await db.query({
    name: 'mended',
    text: 'select 1 from read.projection where name = any ($1) and stopped_by is null limit 1',
    values: [stopped],
  });
  if (rows.length > 0) throw new CheckpointMoved();
};

const applyBatch = async (
  options: ProjectionRunnerOptions,
  db: pg.ClientBase,
  running: Map<string, Projection>,
  checkpoints: Map<string, Checkpoint>,
  batch: Batch,
): Promise<void> => {
  const steps = stepsOf(running, checkpoints, batch);
  if (steps.length === 0) return;
  try {
    await commitSteps(db, steps, batch.position);
  } catch (error) {
    if (!(error instanceof ProjectionFailed)) throw error;
    for (const step of steps) await applyAlone(options, db, running, step, batch.position);
  }
  for (const { projection } of steps) {
    if (running.has(projection.name)) {
      checkpoints.set(projection.name, { position: batch.position, stoppedBy: null });
    }
  }
};

/** One projection's share of a batch, event by event where the whole fails, up to the one at fault. */
const applyAlone = async (
  options: ProjectionRunnerOptions,
  db: pg.ClientBase,
  running: Map<string, Projection>,
  step: Step,
  to: Position,
): Promise<void> => {
  const { projection, events } = step;
  try {
    return await commitSteps(db, [step], to);
  } catch (error) {
    if (!(error instanceof ProjectionFailed)) throw error;
  }
  let { from } = step;
  for (const event of events) {
    try {
      await commitSteps(db, [{ projection, from, events: [event] }], event.position);
      from = event.position;
    } catch (error) {
      if (!(error instanceof ProjectionFailed)) throw error;
      running.delete(projection.name);
      const stoppedBy = `${event.type} at revision ${event.revision} of ${event.stream}: ${error.message}`;
      await db.query('update read.projection set stopped_by = $2 where name = $1', [
        projection.name,
        stoppedBy,
      ]);
      options.log.error({ projection: projection.name, stoppedBy }, 'projection stopped by an event');
      options.onStopped?.(projection.name);
      return;
    }
  }
  await commitSteps(db, [{ projection, from, events: [] }], to);
};

const stepsOf = (
  running: Map<string, Projection>,
  checkpoints: Map<string, Checkpoint>,
  { events, position }: Batch,
): Step[] =>
  [...running.values()].flatMap((projection) => {
    const from = checkpoints.get(projection.name)?.position ?? null;
    if (from !== null && from >= position) return [];
    return [{ projection, from, events: events.filter((event) => from === null || event.position > from) }];
  });

const earliest = (checkpoints: Map<string, Checkpoint>): Position | null => {
  let least: Position | null = null;
  for (const { position } of checkpoints.values()) {
    if (position === null) return null;
    if (least === null || position < least) least = position;
  }
  return least;
};
