import type pg from 'pg';
import { isoTime } from '../domain/kernel/time.ts';
import { IS_ALIVE, olderProcess } from '../platform/postgres/upgrade-path.ts';

/** A process of the installation. */
export interface ProcessState {
  readonly id: string;
  readonly role: string;
  /** Version of its program. */
  readonly release: string | null;
  readonly started_at: string;
  /** The groups that it leads. */
  readonly leads: readonly string[];
  /** How far its clock is ahead of this machine's; behind: below 0. */
  readonly clock_ahead_ms: number;
}

/** Lists the processes that are alive. */
export async function readProcesses(pool: pg.Pool): Promise<ProcessState[]> {
  const { rows } = await pool.query<Omit<ProcessState, 'started_at' | 'clock_ahead_ms'> & { seen_at: Date }>(
    `select p.process_id as id, p.role, p.release, p.seen_at,
            coalesce((select json_agg(l.name order by l.name) from work.lease l where l.process_id = p.process_id), '[]')
              as leads
     from work.process p where ${IS_ALIVE} order by p.role, p.process_id`,
  );
  const now = Date.now();
  return rows.map(({ seen_at, ...row }) => ({
    ...row,
    // Ids of processes are UUIDs of version 7, which begin with their time (RFC 9562 section 5.7).
    started_at: isoTime(Number.parseInt(row.id.replaceAll('-', '').slice(0, 12), 16)),
    clock_ahead_ms: seen_at.getTime() - now,
  }));
}

/** Returns whether no process of an earlier release runs, which would pass over what this one writes. */
export const runsThisReleaseAlone = async (pool: pg.Pool): Promise<boolean> =>
  (await olderProcess(pool)) === null;

/** Returns how many sessions PostgreSQL has, of all programs, and how many it allows. */
export async function readSessions(
  pool: pg.Pool,
): Promise<{ readonly used: number; readonly limit: number }> {
  const { rows } = await pool.query<{ used: number; limit: number }>(
    `select (select count(*) from pg_stat_activity where backend_type = 'client backend')::int as used,
            current_setting('max_connections')::int as limit`,
  );
  return rows[0] ?? { used: 0, limit: 0 };
}
