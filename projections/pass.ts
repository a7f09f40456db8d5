import type pg from 'pg';
import type { Batch, Position, RecordedEvent } from '../event-store/port.ts';
import type { Tail } from '../event-store/tail.ts';
import type { Lease } from '../platform/leases/leases.ts';
import { coalesceNext } from '../platform/limits/coalesce.ts';
import { inSpan, type SpanOf } from '../platform/telemetry/spans.ts';
import {
  type Checkpoint,
  clearStopped,
  commitSteps,
  markStopped,
  ProjectionFailed,
  type Step,
  savePassed,
} from './checkpoints.ts';
import type { Progress } from './progress.ts';
import { type Projection, relevantTo, storableEvents } from './projection.ts';

type Isolation = Pick<PassOptions, 'db' | 'lease' | 'onStopped'>;

/**
 * Applies a batch to all projections, or to each alone if one fails.
 * @returns false if a poison event stopped a projection; the others have then applied the batch
 */
async function commitOrIsolate(options: Isolation, steps: readonly Step[], to: Position): Promise<boolean> {
  const { db, lease } = options;
  try {
    await commitSteps(db, lease, steps, to);
    return true;
  } catch (error) {
    if (!(error instanceof ProjectionFailed)) throw error;
  }
  let allApplied = true;
  for (const step of steps) if (!(await applyAlone(options, step, to))) allApplied = false;
  return allApplied;
}

/** Applies a batch to one projection; if it fails, event by event up to the poison event. */
async function applyAlone({ db, lease, onStopped }: Isolation, step: Step, to: Position): Promise<boolean> {
  const { projection, events } = step;
  try {
    await commitSteps(db, lease, [step], to);
    return true;
  } catch (error) {
    if (!(error instanceof ProjectionFailed)) throw error;
  }
  let { from, passed } = step;
  for (const event of events) {
    try {
      const alone = [{ projection, from, passed, events: [event] }];
      await commitSteps(db, lease, alone, event.position);
      from = event.position;
      passed = event.position;
    } catch (error) {
      if (!(error instanceof ProjectionFailed)) throw error;
      const stoppedBy = `${event.type} at revision ${event.revision} of ${event.stream}: ${error.message}`;
      await markStopped(db, projection.name, stoppedBy);
      onStopped(projection.name, stoppedBy);
      return false;
    }
  }
  await commitSteps(db, lease, [{ projection, from, passed, events: [] }], to);
  return true;
}

export interface PassOptions {
  readonly tail: Tail;
  /** A dedicated connection whose search path contains the tables. */
  readonly db: pg.ClientBase;
  readonly pool: pg.Pool;
  readonly lease: Lease;
  readonly projections: readonly Projection[];
  readonly gatherMs?: number | undefined;
  readonly checkpoints: ReadonlyMap<string, Checkpoint>;
  readonly progress: Progress;
  readonly signal: AbortSignal;
  readonly onApplied: (names: readonly string[], lastEventAt: string | null) => void;
  readonly onStopped: (name: string, stoppedBy: string) => void;
  readonly onResumed: (name: string) => void;
  /** Called after each batch; true ends the pass. */
  readonly isDone?: (position: Position) => boolean;
}

/** Delay before a position that was passed without events is saved. */
const SAVE_MS = 1_000;
/** For this long after a waiter asked for progress, such positions are saved at once. */
const URGENT_MS = 200;

/**
 * Applies the log to projections, one transaction per batch, until the signal aborts, the pass is done, or a poison event
 * stops one of them.
 * @throws CheckpointMoved, and errors of the database
 */
export const runPass = (options: PassOptions): Promise<void> => new Pass(options).run();

class Pass {
  readonly #options: PassOptions;
  readonly #names: readonly string[];
  /** The position that each projection has applied. */
  readonly #froms: Map<string, Position | null>;
  readonly #stopped: Set<string>;
  #passed: Position | null;
  #saving: NodeJS.Timeout | null = null;
  #isOver = false;
  #urgentUntil = Number.NEGATIVE_INFINITY;
  /** One at a time: positions that are passed meanwhile share the next save. */
  readonly #savePassed = coalesceNext(async () => {
    const { pool, lease } = this.#options;
    const passed = this.#passed as Position;
    await savePassed(pool, lease, this.#stepsTo([], passed), passed);
  });

  constructor(options: PassOptions) {
    const { projections, checkpoints } = options;
    this.#options = options;
    this.#names = projections.map(({ name }) => name);
    this.#froms = new Map(this.#names.map((name) => [name, checkpoints.get(name)?.position ?? null]));
    this.#stopped = new Set(this.#names.filter((name) => checkpoints.get(name)?.stoppedBy != null));
    this.#passed = earliest([...this.#froms.values()]);
  }

  async run(): Promise<void> {
    const { tail, lease, progress, signal, gatherMs, onApplied, isDone = () => false } = this.#options;
    const names = this.#names;
    const unsubscribe = progress.onWanted(names, (to) => this.#hurry(to));
    try {
      const following = { after: this.#passed, includeExpired: true, signal };
      const gathering = gatherMs === undefined ? {} : { gatherMs: () => gatherMs };
      for await (const batch of tail.follow({ ...following, ...gathering })) {
        const outcome = await inSpan(spanOf(lease.name, batch), () => this.#apply(batch));
        if (outcome === 'stopped') return;
        const isEnd = isDone(batch.position);
        if (outcome === 'applied' || isEnd) await this.#resume();
        progress.advance(Object.fromEntries(names.map((name) => [name, batch.position])));
        onApplied(names, batch.events.at(-1)?.metadata.at ?? null);
        if (isEnd) return;
      }
    } finally {
      unsubscribe();
      this.#isOver = true;
      if (this.#saving) this.#save();
    }
  }

  async #apply({ events, position }: Batch): Promise<'applied' | 'passed' | 'stopped'> {
    const steps = this.#stepsTo(events, position);
    if (steps.every((step) => step.events.length === 0)) {
      this.#passed = position;
      if (performance.now() < this.#urgentUntil) this.#save();
      else this.#saveLater();
      return 'passed';
    }
    if (!(await commitOrIsolate(this.#options, steps, position))) return 'stopped';
    for (const { projection } of steps) this.#froms.set(projection.name, position);
    this.#passed = position;
    return 'applied';
  }

  #stepsTo(events: readonly RecordedEvent[], to: Position): Step[] {
    return this.#options.projections.flatMap((projection) => {
      const from = this.#froms.get(projection.name) ?? null;
      if (from !== null && from >= to) return [];
      const after = relevantTo(projection, events).filter(({ position }) => from === null || position > from);
      return [{ projection, from, passed: max(from, this.#passed), events: storableEvents(after) }];
    });
  }

  /** Applies and saves waiting events at once, because a caller waits for them. */
  #hurry(to: Position | null): void {
    this.#urgentUntil = performance.now() + URGENT_MS;
    this.#options.tail.hurry(to);
    if (this.#saving) this.#save();
  }

  #save(): void {
    if (this.#saving) clearTimeout(this.#saving);
    this.#saving = null;
    if (this.#passed === null) return;
    // An idle log brings no later batch that would save it, and other processes wait for the saved value.
    void this.#savePassed().catch(() => {
      if (!this.#isOver) this.#saveLater();
    });
  }

  #saveLater(): void {
    this.#saving ??= setTimeout(() => this.#save(), SAVE_MS);
  }

  async #resume(): Promise<void> {
    for (const name of this.#stopped) {
      await clearStopped(this.#options.db, name);
      this.#options.onResumed(name);
    }
    this.#stopped.clear();
  }
}

const earliest = (positions: readonly (Position | null)[]): Position | null =>
  positions.reduce((least, position) =>
    least === null || position === null ? null : position < least ? position : least,
  );

const max = (a: Position | null, b: Position | null): Position | null =>
  a === null ? b : b === null ? a : a > b ? a : b;

const spanOf =
  (group: string, { events }: Batch) =>
  (): SpanOf => ({
    name: 'process projections',
    kind: 'consumer',
    attributes: {
      'messaging.operation.type': 'process',
      'messaging.consumer.group.name': group,
      'messaging.batch.message_count': events.length,
    },
    causes: events.map(({ metadata }) => metadata.traceparent),
  });
