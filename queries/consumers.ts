import type pg from 'pg';

/** How far a consumer of the log is. */
export interface ConsumerPosition {
  /** `projection NAME` or `processor NAME`. */
  readonly name: string;
  /** null: at the beginning. */
  readonly position: bigint | null;
}

/** Lists the saved positions of projections and processors. */
export async function listPositions(
  pool: pg.Pool,
  consumers: { readonly projections: readonly string[]; readonly processors: readonly string[] },
): Promise<ConsumerPosition[]> {
  const { rows } = await pool.query<{ name: string; position: string | null }>({
    name: 'consumer_positions',
    text: `select 'projection ' || n.name as name, c.position
           from unnest($1::text[]) as n (name) left join read.projection c on c.name = n.name
           union all
           select 'processor ' || n.name, c.position
           from unnest($2::text[]) as n (name) left join work.processor c on c.name = n.name`,
    values: [consumers.projections, consumers.processors],
  });
  return rows.map(({ name, position }) => ({ name, position: position === null ? null : BigInt(position) }));
}

/** A projection or processor that an event has stopped. */
export interface StoppedConsumer {
  readonly kind: 'projection' | 'processor';
  readonly name: string;
  /** `TYPE at revision N of STREAM: projection NAME: REASON`, where a consumer names itself. */
  readonly stopped_by: string;
}

export async function listStopped(pool: pg.Pool): Promise<StoppedConsumer[]> {
  const { rows } = await pool.query<StoppedConsumer>(
    `select 'projection' as kind, name, stopped_by from read.projection where stopped_by is not null
     union all
     select 'processor', name, stopped_by from work.processor where stopped_by is not null`,
  );
  return rows;
}

/** A projection as its checkpoint has it. */
export interface ProjectionState {
  readonly name: string;
  readonly position: string | null;
  /** The event that stopped it; null: none. */
  readonly stopped_by: string | null;
}

export async function listProjectionStates(pool: pg.Pool): Promise<ProjectionState[]> {
  const { rows } = await pool.query<ProjectionState>(
    'select name, position, stopped_by from read.projection order by name',
  );
  return rows;
}

/** Returns which process (`ROLE ID`) leads each group. */
export async function readLeaders(pool: pg.Pool): Promise<Map<string, string>> {
  const { rows } = await pool.query<{ name: string; leader: string }>(
    `select l.name, p.role || ' ' || p.process_id as leader
     from work.lease l join work.process p on p.process_id = l.process_id`,
  );
  return new Map(rows.map(({ name, leader }) => [name, leader]));
}
