import type pg from 'pg';

/** A plan as `explain (analyze, format json)` shows it. */
export interface Plan {
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows'?: number;
  readonly 'Actual Loops'?: number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Plan[];
}

/** The rows of a table that a plan has read. */
export const rowsRead = (plan: Plan, table: string): number => {
  const { 'Actual Rows': rows = 0, 'Actual Loops': loops = 0, 'Rows Removed by Filter': removed = 0 } = plan;
  const own = plan['Relation Name'] === table ? (rows + removed) * loops : 0;
  return (plan.Plans ?? []).reduce((sum, below) => sum + rowsRead(below, table), own);
};

/** The tables that a plan reads. */
export const tablesOf = (plan: Plan): string[] => [
  ...new Set([plan['Relation Name'] ?? [], ...(plan.Plans ?? []).map(tablesOf)].flat()),
];

/** Runs a statement and returns its plan. */
export const planOf = async (
  db: Pick<pg.ClientBase, 'query'>,
  text: string,
  values: unknown[],
): Promise<Plan> =>
  (await db.query(`explain (analyze, format json) ${text}`, values)).rows[0]['QUERY PLAN'][0].Plan;

interface Query {
  readonly name?: string;
  readonly text: string;
  readonly values: unknown[];
}

/**
 * A pool of which each query of a name, or with a part of a text, first notes the rows of a table that its plan reads, undone
 * before it runs.
 */
export const explaining = (pool: pg.Pool, which: string, table: string) => {
  const read: number[] = [];
  const query = async (given: Query | string, values: unknown[] = []) => {
    const config = typeof given === 'string' ? { text: given, values } : given;
    if (config.name === which || config.text.includes(which)) {
      const client = await pool.connect();
      await client.query('begin');
      read.push(rowsRead(await planOf(client, config.text, config.values), table));
      await client.query('rollback');
      client.release();
    }
    return pool.query(config);
  };
  return { pool: { query } as unknown as pg.Pool, read };
};

/** The rows of a table (`schema.name`) that the connection's transaction has read, those within functions too. */
export const rowsReadSoFar = async (db: Pick<pg.ClientBase, 'query'>, table: string): Promise<number> => {
  const { rows } = await db.query(
    `select coalesce(sum(seq_tup_read + idx_tup_fetch), 0)::int as read
     from pg_stat_xact_all_tables where schemaname || '.' || relname = $1`,
    [table],
  );
  return rows[0].read;
};
