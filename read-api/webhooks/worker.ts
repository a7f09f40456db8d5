import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { aheadAfter } from '../../domain/kernel/ahead.ts';
import { MINUTE } from '../../domain/kernel/time.ts';
import type { WebhookWorker } from './schemas.ts';

/** A partner's deliveries whose next attempt is due. `now` in milliseconds. */
export type QueueState = (
  partnerId: string,
  now: number,
) => Promise<{ readonly due: number; readonly oldest_due_at: string | null }>;

/** A process without a heartbeat for this long has ended. */
const GONE_MS = 5_000;
/** A delivery that is due for longer shows that no process delivers. */
const STALLED_MS = MINUTE;

const seen = z.object({ seen_at: z.string().nullable() });

/** Whether deliveries are under way. `now` in milliseconds. */
export const workerHealth = async (
  { db, queueState }: { readonly db: DatabasePool; readonly queueState: QueueState },
  partnerId: string,
  now: number,
): Promise<WebhookWorker> => {
  const [last_seen_at, { due, oldest_due_at }] = await Promise.all([
    db.oneFirst(sql.type(seen)`
      select max(seen_at) as seen_at from work.process
      where role in ('all', 'workers') and seen_at <= ${sql.timestamp(new Date(aheadAfter(now)))}`),
    queueState(partnerId, now),
  ]);
  const beats = last_seen_at !== null && now - Date.parse(last_seen_at) < GONE_MS;
  const waits = oldest_due_at !== null && now - Date.parse(oldest_due_at) > STALLED_MS;
  const status = beats ? (waits ? 'stalled' : 'running') : 'stopped';
  return { status, last_seen_at, due, oldest_due_at };
};
