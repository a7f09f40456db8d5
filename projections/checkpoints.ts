import type pg from 'pg';
import type { Position, RecordedEvent } from '../event-store/port.ts';
import { PROJECTED_CHANNEL } from './progress.ts';
import type { Projection } from './projection.ts';

/** Another leader, or a rebuild, has moved the checkpoint: start again from what it says now. */
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

/** The checkpoints of the named projections; one that has none yet begins before the first event. */
export const loadCheckpoints = async (
  db: pg.ClientBase,
  names: readonly string[],
): Promise<Map<string, Checkpoint>> => {
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
};

export interface Step {
  readonly projection: Projection;
  readonly from: Position | null;
  readonly events: readonly RecordedEvent[];
}

/**
 * Rows and checkpoints of all steps in one transaction, guarded by where each checkpoint was.
 * @throws CheckpointMoved, ProjectionFailed; nothing is committed then
 */
export const commitSteps = async (db: pg.ClientBase, steps: readonly Step[], to: Position): Promise<void> => {
  await db.query('begin');
  try {
    // The checkpoints first, as a rebuild does: whoever has them may touch the tables.
    const positions = Object.fromEntries(steps.map((step) => [step.projection.name, to.toString()]));
    const moved = await db.query({
      name: 'advance_checkpoints',
      text: `with moved as (
               update read.projection p set position = $3, stopped_by = null
               from unnest($1::text[], $2::bigint[]) as s (name, position)
               where p.name = s.name and p.position is not distinct from s.position
               returning 1)
             select count(*)::int as n, pg_notify($4, $5) from moved`,
      values: [
        steps.map((step) => step.projection.name),
        steps.map((step) => step.from),
        to,
        PROJECTED_CHANNEL,
        JSON.stringify(positions),
      ],
    });
    if (moved.rows[0]?.n !== steps.length) throw new CheckpointMoved();
    for (const { projection, events } of steps) {
      if (events.length === 0) continue;
      await projection.apply(events, db).catch((error: unknown) => {
        throw isAway(error) ? error : new ProjectionFailed(projection, error);
      });
    }
    await db.query('commit');
  } catch (error) {
    await db.query('rollback').catch(() => undefined);
    throw error;
  }
};

/** Whether the database went away, rather than refused: no event is to blame. */
const isAway = (error: unknown): boolean => {
  const code = (error as { code?: string }).code ?? '';
  return (
    /^(08|53|57P|40)/.test(code) ||
    /ECONN|EPIPE|ENOENT|terminat|timeout|not queryable/i.test(`${code} ${error}`)
  );
};
