import type pg from 'pg';
import type { Logger } from 'pino';
import type { Position } from '../event-store/port.ts';
import type { Tail } from '../event-store/tail.ts';
import { createWakeup, pause } from '../platform/clock/waiting.ts';
import type { Lease } from '../platform/leases/leases.ts';
import { connectClient, createClient, endClient, IDLE_TRANSACTION } from '../platform/postgres/pool.ts';
import { type Checkpoint, CheckpointMoved, loadCheckpoints } from './checkpoints.ts';
import { runPass } from './pass.ts';
import type { Progress } from './progress.ts';
import { type Projection, sessionSettings } from './projection.ts';

/** Time that a running query gets at shutdown. */
const ENDING_MS = 1_000;
/** Far longer than a batch takes: until then a connection that the network has dropped keeps its read models from growing. */
const ANSWER_MS = 15_000;
const SETTINGS = `${sessionSettings('read')} -c idle_in_transaction_session_timeout=${IDLE_TRANSACTION}`;

/** Runs work with a connection of its own. Losing the connection aborts the work. */
async function withConnection(
  url: string,
  lease: Lease,
  signal: AbortSignal,
  work: (db: pg.ClientBase, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const db = createClient(url, `doorplate projections ${lease.name}`, {
    settings: SETTINGS,
    connectionTimeoutMillis: 2_000,
    query_timeout: ANSWER_MS,
    pipeline: true,
  });
  const lost = new AbortController();
  const end = (): void => void endClient(db);
  // A query on a dead connection never returns and would keep the group from restarting.
  const endSoon = (): void => void setTimeout(end, ENDING_MS).unref();
  signal.addEventListener('abort', endSoon, { once: true });
  db.on('error', () => lost.abort());
  db.on('end', () => lost.abort());
  try {
    await connectClient(db);
    await work(db, AbortSignal.any([signal, lost.signal]));
  } finally {
    signal.removeEventListener('abort', endSoon);
    end();
  }
  if (lost.signal.aborted && !signal.aborted)
    throw new Error('the projections lost their database connection');
}

export interface ProjectionsOptions {
  readonly tail: Tail;
  readonly url: string;
  readonly pool: pg.Pool;
  readonly projections: readonly Projection[];
  /** How long events may wait for a batch while nobody waits for them, in milliseconds. Default: as long as the tail waits. */
  readonly gatherMs?: number | undefined;
  readonly progress: Progress;
  readonly log: Logger;
  /** Called after each batch with the newest event's time (ISO 8601), for the lag metric. */
  readonly onApplied?: (names: readonly string[], lastEventAt: string | null) => void;
  readonly onStopped?: (name: string) => void;
  /** Called when this process starts the projections, and when a stopped one resumes. */
  readonly onRunning?: (names: readonly string[]) => void;
  /** Wait before a poison event is retried, milliseconds. Default: a minute. */
  readonly retryStoppedMs?: number;
}

const RETRY_STOPPED_MS = 60_000;
/** How often a stopped projection checks whether a rebuild has passed its poison event. */
const REBUILD_CHECK_MS = 1_000;
const RESTART_MS = 100;

/**
 * Runs the projections of a group: those at the same position share a pass, and each one that is behind gets a pass of its own
 * until it has caught up. A poison event stops only its projection, which retries every minute.
 */
export async function runProjections(
  options: ProjectionsOptions,
  lease: Lease,
  signal: AbortSignal,
): Promise<void> {
  const { pool, projections, log } = options;
  const names = projections.map(({ name }) => name);
  const retryAt = new Map<string, number>();
  options.onRunning?.(names);
  while (!signal.aborted) {
    const checkpoints = await loadCheckpoints(pool, names);
    const plan = planPasses(projections, checkpoints, options.tail);
    for (const { name } of plan.stopped) options.onStopped?.(name);
    try {
      await untilOneEnds(signal, (ending) => [
        ...[plan.together, ...plan.behind.map((one) => [one])]
          .filter((some) => some.length > 0)
          .map((some) => () => runSession(options, lease, some, checkpoints, ending, some !== plan.together)),
        ...plan.stopped.map((one) => () => retryStopped(options, lease, one, checkpoints, ending, retryAt)),
      ]);
    } catch (error) {
      if (!(error instanceof CheckpointMoved)) throw error;
      log.info(
        { group: lease.name },
        'a rebuild or another leader moved the checkpoints; restarting from them',
      );
      await pause(RESTART_MS, signal);
    }
  }
}

interface Plan {
  readonly together: readonly Projection[];
  readonly behind: readonly Projection[];
  readonly stopped: readonly Projection[];
}

/** Plans the passes: the furthest projections, and those within the tail's memory, run together. */
function planPasses(
  projections: readonly Projection[],
  checkpoints: ReadonlyMap<string, Checkpoint>,
  tail: Tail,
): Plan {
  const positionOf = ({ name }: Projection): Position | null => checkpoints.get(name)?.position ?? null;
  const stopped = projections.filter(({ name }) => checkpoints.get(name)?.stoppedBy != null);
  const running = projections.filter((one) => !stopped.includes(one));
  const furthest = running.reduce<bigint>((most, one) => {
    const position = positionOf(one) ?? -1n;
    return position > most ? position : most;
  }, -1n);
  const isTogether = (one: Projection): boolean =>
    (positionOf(one) ?? -1n) === furthest || tail.covers(positionOf(one));
  return {
    together: running.filter(isTogether),
    behind: running.filter((one) => !isTogether(one)),
    stopped,
  };
}

/** Starts all works, and aborts the others when the first ends. @throws the error of the first work in order that failed */
async function untilOneEnds(
  signal: AbortSignal,
  worksOf: (ending: AbortSignal) => readonly (() => Promise<void>)[],
): Promise<void> {
  const ending = new AbortController();
  const works = worksOf(AbortSignal.any([signal, ending.signal]));
  const results = await Promise.allSettled(works.map((work) => work().finally(() => ending.abort())));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

async function runSession(
  options: ProjectionsOptions,
  lease: Lease,
  projections: readonly Projection[],
  checkpoints: ReadonlyMap<string, Checkpoint>,
  signal: AbortSignal,
  untilCaughtUp: boolean,
): Promise<void> {
  const { tail, log } = options;
  await withConnection(options.url, lease, signal, (db, ending) =>
    runPass({
      ...options,
      db,
      lease,
      projections,
      checkpoints,
      signal: ending,
      onApplied: (names, lastEventAt) => options.onApplied?.(names, lastEventAt),
      onStopped: (name, stoppedBy) => {
        log.error({ projection: name, stoppedBy }, 'projection stopped by an event; retried in a minute');
        options.onStopped?.(name);
      },
      onResumed: (name) => {
        log.info({ projection: name }, 'projection continues after the event that had stopped it');
        options.onRunning?.([name]);
      },
      ...(untilCaughtUp ? { isDone: (position) => tail.covers(position) } : {}),
    }),
  );
}

/** Retries the poison event of a projection after a minute, or resumes at once when a rebuild has passed it. */
async function retryStopped(
  options: ProjectionsOptions,
  lease: Lease,
  projection: Projection,
  checkpoints: ReadonlyMap<string, Checkpoint>,
  signal: AbortSignal,
  retryAt: Map<string, number>,
): Promise<void> {
  const { name } = projection;
  const due = retryAt.get(name) ?? performance.now() + (options.retryStoppedMs ?? RETRY_STOPPED_MS);
  retryAt.set(name, due);
  const wakeup = createWakeup();
  while (!signal.aborted && performance.now() < due) {
    await wakeup.wait(Math.min(REBUILD_CHECK_MS, due - performance.now()), signal);
    const { stoppedBy } = (await loadCheckpoints(options.pool, [name])).get(name) ?? {};
    if (stoppedBy !== null) continue;
    retryAt.delete(name);
    options.onRunning?.([name]);
    return;
  }
  if (signal.aborted) return;
  retryAt.delete(name);
  await runSession(options, lease, [projection], checkpoints, signal, true);
}
