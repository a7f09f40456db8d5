import type pg from 'pg';

const ROWS = 2_000;

/**
 * Repeats a deletion of rows before `$1` (a day `YYYY-MM-DD`, a position or an instant), at most `$2` rows each time, until
 * none is left.
 */
export const forgetInBatches = async (db: pg.Pool, text: string, before: string | Date): Promise<void> => {
  for (let deleted = ROWS; deleted === ROWS; ) {
    deleted = (await db.query(text, [before, ROWS])).rowCount ?? 0;
  }
};
