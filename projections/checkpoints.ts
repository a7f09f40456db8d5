import type pg from 'pg';
import type { Position, RecordedEvent } from '../event-store/port.ts';
import type { Lease } from '../platform/leases/leases.ts';
import { notifyIfRoom } from '../platform/postgres/notifications.ts';
import { isTransient } from '../platform/postgres/unavailable.ts';
import { PROJECTED_CHANNEL } from './progress.ts';
import type { Projection } from './projection.ts';

/** Another leader or a rebuild moved the checkpoint, or the lease was lost; the runner restarts from the checkpoint. */
export class CheckpointMoved extends Error {}

/** A projection of the batch could not apply an event. */
export class ProjectionFailed extends Error {
  readonly projection: Projection;
  constructor(projection: Projection, cause: unknown) {
    super(`projection ${projection.name}: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
    this.projection = projection;
  }
}

export interface Checkpoint {
  readonly position: Position | null;
  readonly stoppedBy: string | null;
}

/** Loads the checkpoints of the named projections, creating missing ones at the start of the log. */
export async function loadCheckpoints(
  db: pg.ClientBase | pg.Pool,
  names: readonly string[],
): Promise<Map<string, Checkpoint>> {
  await db.query(
    'insert into read.projection (name) select * from unnest($1::text[]) on conflict (name) do nothing',
    [names],
  );
  const { rows } = await db.query(
    'select name, position, stopped_by from read.projection where name = any ($1)',
    [names],
  );
  return new Map(
    rows.map((row) => [
      row.name,
      {
        position: row.position === null ? null : (BigInt(row.position) as Position),
        stoppedBy: row.stopped_by,
      },
    ]),
  );
}

export interface Step {
  readonly projection: Projection;
  readonly from: Position | null;
  /** Position passed since then without an event for this projection; the checkpoint may be anywhere up to it. */
  readonly passed: Position | null;
  readonly events: readonly RecordedEvent[];
}

/**
 * Commits rows and checkpoints of all steps in one transaction, guarded by the known checkpoints and the lease.
 * @throws CheckpointMoved, ProjectionFailed; nothing is committed then
 */
export async function commitSteps(
  db: pg.ClientBase,
  lease: Lease,
  steps: readonly Step[],
  to: Position,
): Promise<void> {
  // Pipelined in this order, so that a pass costs two round trips in total.
  const begun = db.query('begin');
  // Checkpoints are locked before the tables, in the same order as in a rebuild.
  const moving = db.query({
    name: 'advance_checkpoints',
    text: ADVANCE_AND_RESUME,
    values: advance(lease, steps, to),
  });
  const applying = steps.map(async ({ projection, events }) => {
    if (events.length > 0) await projection.apply(events, db);
  });
  try {
    const [, moved, ...applied] = await Promise.allSettled([begun, moving, ...applying]);
    if (moved.status === 'fulfilled' && moved.value.rows[0]?.n !== steps.length) throw new CheckpointMoved();
    const failures = [moved, ...applied].flatMap((result, nth) =>
      result.status === 'rejected' ? [{ step: steps[nth - 1], error: result.reason as unknown }] : [],
    );
    // After a failed statement, all later ones fail too; report the cause.
    const failure = failures.find(({ error }) => !isAborted(error)) ?? failures[0];
    if (failure) throw failureOf(failure.step, failure.error);
    await db.query('commit');
  } catch (error) {
    await db.query('rollback').catch(() => undefined);
    throw error;
  }
}

/** Whether a statement failed only because an earlier one of its transaction had failed. */
const isAborted = (error: unknown): boolean => (error as { code?: unknown }).code === IN_FAILED_TRANSACTION;
const IN_FAILED_TRANSACTION = '25P02';

const failureOf = (step: Step | undefined, error: unknown): unknown =>
  step === undefined || isTransient(error) ? error : new ProjectionFailed(step.projection, error);

/** Saves a position that was passed without events for any of the projections. Losing it is harmless. */
export async function savePassed(
  pool: pg.Pool,
  lease: Lease,
  steps: readonly Step[],
  to: Position,
): Promise<void> {
  await pool.query({ name: 'save_passed', text: ADVANCE, values: advance(lease, steps, to) });
}

const advance = (lease: Lease, steps: readonly Step[], to: Position): unknown[] => [
  steps.map((step) => step.projection.name),
  steps.map((step) => step.from ?? -1n),
  steps.map((step) => step.passed ?? -1n),
  to,
  lease.name,
  lease.number,
  lease.processId,
  JSON.stringify(Object.fromEntries(steps.map((step) => [step.projection.name, to.toString()]))),
];

/** Locks by name as a rebuild does: a group saves what it has passed beside the commits of its own connection. */
const advanceWith = (more: string): string => `
  with held as materialized (
    select name from read.projection where name = any ($1) order by name for update),
  moved as (
    update read.projection p set position = $4${more}
    from unnest($1::text[], $2::bigint[], $3::bigint[]) as s (name, "from", passed)
    where p.name = s.name and p.name in (select name from held) and coalesce(p.position, -1) between s."from" and s.passed
      and exists (select from work.lease l where l.name = $5 and l.number = $6::bigint and l.process_id = $7::uuid)
    returning 1)
  select (select count(*)::int from moved) as n, ${notifyIfRoom(`'${PROJECTED_CHANNEL}'`, '$8::text')}`;
const ADVANCE = advanceWith('');
/** Resuming also clears `stopped_by`, because the poison event is applied by then. */
const ADVANCE_AND_RESUME = advanceWith(', stopped_by = null');

/** Clears the poison event of a projection that continues. */
export async function clearStopped(db: pg.ClientBase, name: string): Promise<void> {
  await db.query('update read.projection set stopped_by = null where name = $1 and stopped_by is not null', [
    name,
  ]);
}

export async function markStopped(db: pg.ClientBase, name: string, stoppedBy: string): Promise<void> {
  await db.query('update read.projection set stopped_by = $2 where name = $1', [name, stoppedBy]);
}
