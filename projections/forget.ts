import type pg from 'pg';

const ROWS = 2_000;

/** Repeats a deletion of rows before the day `$1` (`YYYY-MM-DD`), at most `$2` rows each time, until none is left. */
export const forgetInBatches = async (db: pg.Pool, text: string, day: string): Promise<void> => {
  for (let deleted = ROWS; deleted === ROWS; ) {
    deleted = (await db.query(text, [day, ROWS])).rowCount ?? 0;
  }
};
