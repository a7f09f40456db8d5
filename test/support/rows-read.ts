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
