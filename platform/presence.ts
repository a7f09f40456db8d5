import type pg from 'pg';
import { v7 as uuid } from 'uuid';
import type { Clock } from './clock.ts';

const BEAT_MS = 1_000;
/** A process that has not beaten for so long is gone. */
export const GONE_MS = 5_000;

/** Tells whether other processes share the limits of this one. */
export interface Presence {
  readonly processId: string;
  alone(): boolean;
  stop(): Promise<void>;
}

/**
 * Enters this process among those alive and keeps it there. Resolves after the others have had time to see
 * it, so that a limit never holds twice over.
 */
export const enterPresence = async (pool: pg.Pool, role: string, clock: Clock): Promise<Presence> => {
  const processId = uuid();
  let others = 0;

  const beat = async (): Promise<void> => {
    const now = clock.now();
    const { rows } = await pool.query({
      name: 'beat',
      text: `with me as (
               insert into work.process (process_id, role, seen_at) values ($1, $2, $3)
               on conflict (process_id) do update set seen_at = excluded.seen_at),
             gone as (delete from work.process where seen_at < $4 and process_id <> $1)
             select count(*)::int as others from work.process where process_id <> $1 and seen_at >= $4`,
      values: [processId, role, new Date(now), new Date(now - GONE_MS)],
    });
    others = rows[0].others;
  };

  await beat();
  const timer = setInterval(() => void beat().catch(() => undefined), BEAT_MS);
  if (others > 0) await new Promise((resolve) => setTimeout(resolve, BEAT_MS + 200));
  return {
    processId,
    alone: () => others === 0,
    stop: async () => {
      clearInterval(timer);
      await pool.query('delete from work.process where process_id = $1', [processId]).catch(() => undefined);
    },
  };
};
