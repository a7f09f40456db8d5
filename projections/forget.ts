import type pg from 'pg';

const ROWS = 2_000;

/** Runs a deletion of what is before `$1` (`YYYY-MM-DD`), at most `$2` rows at once, until nothing of it is left. */
export const forgetInBatches = async (db: pg.Pool, text: string, day: string): Promise<void> => {
  for (let deleted = ROWS; deleted === ROWS; ) {
    deleted = (await db.query(text, [day, ROWS])).rowCount ?? 0;
  }
};
