/** Named readers of how full partners' queues are: pending deliveries, and bytes of payloads. */
import type pg from 'pg';

/** Returns how full the fullest partner's queue is, by deliveries or by bytes of payloads: 1 is full. */
export async function readQueueFill(pool: pg.Pool, deliveries: number, bytes: number): Promise<number> {
  const { rows } = await pool.query<{ fill: number }>(
    `select greatest(
       (select max(n) / $1::float8 from (
         select sum(pending) as n from read.webhook_health where deleted_at is null group by partner_id) p),
       (select max(n) / $2::float8 from (select sum(bytes) as n from read.webhook_retained group by partner_id) b),
       0)::float8 as fill`,
    [deliveries, bytes],
  );
  return rows[0]?.fill ?? 0;
}

/** A queue of a partner's that is nearly full. */
export interface NearlyFullQueue {
  readonly queue: 'webhook_deliveries' | 'webhook_payload_bytes';
  readonly partner_id: string;
  readonly used: number;
  readonly limit: number;
}

/** Lists partners' queues that take at least `share` of their ceiling. */
export async function listNearlyFullQueues(
  pool: pg.Pool,
  ceilings: { readonly deliveries: number; readonly bytes: number },
  share: number,
): Promise<NearlyFullQueue[]> {
  const { rows } = await pool.query<NearlyFullQueue>(
    `select 'webhook_deliveries' as queue, partner_id, used::float8 as used, $1::float8 as limit
     from (select partner_id, sum(pending) as used from read.webhook_health where deleted_at is null group by 1) d
     where used >= $1 * $3::float8
     union all
     select 'webhook_payload_bytes', partner_id, used::float8, $2::float8
     from (select partner_id, sum(bytes) as used from read.webhook_retained group by 1) b where used >= $2 * $3`,
    [ceilings.deliveries, ceilings.bytes, share],
  );
  return rows;
}
