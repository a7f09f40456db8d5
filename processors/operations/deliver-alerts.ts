import { type AfterAttempt, afterAttempt } from '../../domain/webhooks/schedule.ts';
import type { Logger } from '../../platform/telemetry/log.ts';
import type { ProcessorDeps } from '../deps.ts';
import type { SendResult } from '../webhooks/delivery/sender.ts';

export interface DeliverAlertsDeps extends Pick<ProcessorDeps, 'pool' | 'clock'> {
  readonly log: Logger;
  /** Signs and posts a body to the operator's URL. Never throws. */
  readonly post: (alertId: string, body: Buffer) => Promise<SendResult>;
  readonly retryBaseMs: number;
  readonly random: () => number;
  readonly signal: AbortSignal;
}

interface DueAlert {
  readonly alert_id: string;
  readonly body: string;
  readonly attempts: number;
  readonly created_at: Date;
}

/** An attempt takes ten seconds at most; the next run goes on. */
const ALERTS_A_RUN = 20;

/**
 * Sends the alerts that are due, the oldest first, by the schedule of partners' webhooks (contract, Webhooks 5). A process that ends
 * between an attempt and its record sends the alert again, with the same id.
 */
export async function deliverAlerts(deps: DeliverAlertsDeps): Promise<void> {
  const { pool, clock, signal } = deps;
  const { rows } = await pool.query<DueAlert>(
    `select alert_id, body, attempts, created_at from work.operator_alert
     where delivered_at is null and gave_up_at is null and due_at <= $1 order by due_at limit ${ALERTS_A_RUN}`,
    [new Date(clock.now())],
  );
  for (const alert of rows) {
    if (signal.aborted) return;
    if (!(await deliver(deps, alert))) return;
  }
}

/** @returns whether the receiver accepted it; the others wait for the next run */
async function deliver(
  deps: DeliverAlertsDeps,
  { alert_id, body, attempts, created_at }: DueAlert,
): Promise<boolean> {
  const { pool, clock, log, post, retryBaseMs, random } = deps;
  const began = clock.now();
  const { error, http_status, retry_after_ms } = await post(alert_id, Buffer.from(body));
  const now = clock.now();
  const after = afterAttempt(
    { attempt: attempts + 1, ranMs: now - created_at.getTime(), error, retryAfterMs: retry_after_ms },
    { baseMs: retryBaseMs, random: random() },
  );
  await pool.query(
    `update work.operator_alert
     set attempts = attempts + 1, last_attempt_at = $2, last_error = $3, last_http_status = $4, due_at = $5, delivered_at = $6,
         gave_up_at = $7
     where alert_id = $1`,
    [alert_id, new Date(began), error, http_status, ...timesAfter(after, now)],
  );
  if (error !== null) {
    log.warn(
      { alert: alert_id, error, http_status },
      `the operator's webhook failed; ${after.state === 'failed' ? 'no retry is left' : 'retry scheduled'}`,
    );
  }
  return error === null;
}

const timesAfter = ({ state, delayMs }: AfterAttempt, now: number) =>
  [
    new Date(now + (delayMs ?? 0)),
    state === 'delivered' ? new Date(now) : null,
    state === 'failed' ? new Date(now) : null,
  ] as const;
