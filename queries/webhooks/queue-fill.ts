import type pg from 'pg';

/** Returns how full the fullest partner's queue is, by deliveries or by bytes of payloads: 1 is full. */
export const readQueueFill = async (pool: pg.Pool, deliveries: number, bytes: number): Promise<number> => {
  const { rows } = await pool.query<{ fill: number }>(
    `select greatest(
       (select max(n) / $1::float8 from (
         select sum(pending) as n from read.webhook_health where deleted_at is null group by partner_id) p),
       (select max(n) / $2::float8 from (select sum(bytes) as n from read.webhook_retained group by partner_id) b),
       0)::float8 as fill`,
    [deliveries, bytes],
  );
  return rows[0]?.fill ?? 0;
};
