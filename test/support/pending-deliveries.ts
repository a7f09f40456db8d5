import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { DAY } from '../../domain/kernel/time.ts';

type Db = Pick<pg.Pool, 'query'>;

export interface Endpoint {
  readonly webhookId: string;
  readonly partnerId: string;
}

export interface PendingDeliveries {
  readonly count: number;
  /** When their due time was recorded, milliseconds. */
  readonly recordedAt: number;
  /** Default: when it was recorded. */
  readonly dueAt?: number;
  /** Default: a day after it was recorded. */
  readonly payloadExpiresAt?: number;
  readonly position?: number;
}

/** Adds the row of an endpoint that has deliveries to send, without its events. */
export const insertEndpoint = async (db: Db, pending = 1): Promise<Endpoint> => {
  const [webhookId, partnerId] = [randomUUID(), randomUUID()];
  await db.query(
    `insert into read.webhook_health (webhook_id, partner_id, pending, failures_in_row, still_ms) values ($1, $2, $3, 0, 0)`,
    [webhookId, partnerId, pending],
  );
  return { webhookId, partnerId };
};

/** Adds rows of deliveries of an endpoint that wait for their first attempt, without their events. */
export const insertPendingDeliveries = async (
  db: Db,
  { webhookId, partnerId }: Endpoint,
  {
    count,
    recordedAt,
    dueAt = recordedAt,
    payloadExpiresAt = recordedAt + DAY,
    position = 1,
  }: PendingDeliveries,
): Promise<void> => {
  await db.query(
    `insert into read.webhook_delivery (delivery_id, webhook_id, partner_id, event_id, type, state, cycle, attempts,
       cycle_attempts, cycle_started_at, stood_still_ms, created_at, position, payload_expires_at, next_attempt_at)
     select gen_random_uuid(), $1, $2, 'evt', 'session.created', 'pending', 1, 0, 0, $4, 0, $4, $7, $6, $5
     from generate_series(1, $3::int)`,
    [
      webhookId,
      partnerId,
      count,
      new Date(recordedAt),
      new Date(dueAt),
      new Date(payloadExpiresAt),
      position,
    ],
  );
};
