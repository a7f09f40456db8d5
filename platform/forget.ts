import type pg from 'pg';

const ROWS = 2_000;

/**
 * Repeats a deletion of rows at `$1` or before (a day `YYYY-MM-DD`, a position or an instant), at most `$2` rows each time,
 * until none is left. The text finds the rows as `key = any (array(select …))`: for `key in (select …)` the planner may read
 * the whole table.
 */
export const forgetInBatches = async (db: pg.Pool, text: string, before: string | Date): Promise<void> => {
  for (let deleted = ROWS; deleted === ROWS; ) {
    deleted = (await db.query(text, [before, ROWS])).rowCount ?? 0;
  }
};

/**
 * Repeats a statement for one page of a table after another: the page begins behind the key `$1`, other values follow, and the
 * statement returns the page's last key as `last`, or nothing where no page is left.
 */
export const inPages = async (
  db: pg.Pool,
  statement: { readonly name: string; readonly text: string },
  first: string,
  ...values: readonly unknown[]
): Promise<void> => {
  for (let after: string | undefined = first; after !== undefined; ) {
    const { rows }: pg.QueryResult<{ last: string }> = await db.query({
      ...statement,
      values: [after, ...values],
    });
    after = rows[0]?.last;
  }
};
