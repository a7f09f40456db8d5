import type pg from 'pg';
import { DAY } from '../../domain/kernel/time.ts';

const KEPT_DAYS = 8;

/** Records the size of the database, so that `doorplate status` can tell how fast it grows. `now`: milliseconds. */
export async function sampleDisk(pool: pg.Pool, now: number): Promise<void> {
  await pool.query(
    `insert into work.disk_sample (taken_at, used_bytes)
     values ($1, pg_database_size(current_database())) on conflict do nothing`,
    [new Date(now)],
  );
  await pool.query('delete from work.disk_sample where taken_at < $1', [new Date(now - KEPT_DAYS * DAY)]);
}
