import type pg from 'pg';
import { isoTime } from '../../domain/kernel/time.ts';

/** How the receiver of the operator's webhook takes its alerts. */
export interface OperatorWebhookState {
  readonly pending: number;
  /** When the oldest alert that is still undelivered after an attempt was made; null: none. */
  readonly failing_since: string | null;
  readonly last_delivered_at: string | null;
  /** Of the alert that waits longest; null: it has not failed. */
  readonly last_error: string | null;
}

export async function readOperatorWebhook(pool: pg.Pool): Promise<OperatorWebhookState> {
  const { rows } = await pool.query<{
    pending: number;
    failing: Date | null;
    delivered: Date | null;
    error: string | null;
  }>(
    `select count(*) filter (where due)::int as pending, min(created_at) filter (where due and attempts > 0) as failing,
            max(delivered_at) as delivered, (array_agg(last_error order by created_at) filter (where due))[1] as error
     from (select *, delivered_at is null and gave_up_at is null as due from work.operator_alert) a`,
  );
  const { pending = 0, failing = null, delivered = null, error = null } = rows[0] ?? {};
  return {
    pending,
    failing_since: failing && isoTime(failing.getTime()),
    last_delivered_at: delivered && isoTime(delivered.getTime()),
    last_error: error,
  };
}
