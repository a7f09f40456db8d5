import type pg from 'pg';
import { DAY, HOUR } from '../../domain/kernel/time.ts';

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

export interface DatabaseSize {
  readonly used_bytes: number;
  /** By the oldest sample; null: it is younger than an hour, which says nothing of a day. */
  readonly growth_bytes_per_day: number | null;
}

/** Returns the size of the database and how fast it grows. `now`: milliseconds. */
export async function readDatabaseSize(pool: pg.Pool, now: number): Promise<DatabaseSize> {
  const { rows } = await pool.query<{ used: string; first: string | null; taken_at: Date | null }>(
    `select pg_database_size(current_database()) as used, s.used_bytes as first, s.taken_at
     from (values (1)) one left join lateral (
       select * from work.disk_sample order by taken_at limit 1) s on true`,
  );
  const { used = '0', first = null, taken_at = null } = rows[0] ?? {};
  const age = now - (taken_at?.getTime() ?? now);
  return {
    used_bytes: Number(used),
    growth_bytes_per_day:
      age < HOUR || first === null ? null : Math.round(((Number(used) - Number(first)) * DAY) / age),
  };
}
