import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { isoTime, utcDay } from '../../domain/kernel/time.ts';
import { BREAKER_OPENS_AFTER, WEBHOOK_HISTORY_MS } from '../../domain/webhooks/events.ts';
import { NO_DELIVERIES } from './answer.ts';
import { deliveryState } from './delivery-schemas.ts';
import { notSwept } from './not-swept.ts';
import type { DeliveryTotals } from './schemas.ts';

const totalRow = z.object({ webhook_id: z.string(), state: deliveryState, deliveries: z.number() });

/**
 * Counts the deliveries of the last 90 UTC days of these endpoints by state: sums stored counts, and corrects them by rows
 * that have expired and are not swept yet. `now` in milliseconds.
 */
export const countDeliveries = async (
  db: DatabasePool,
  webhookIds: readonly string[],
  now: number,
): Promise<ReadonlyMap<string, DeliveryTotals>> => {
  const ids = sql.fragment`any (${sql.array(webhookIds, 'uuid')})`;
  const oldest = utcDay(now - WEBHOOK_HISTORY_MS);
  const rows = await db.any(sql.type(totalRow)`
    with not_swept as materialized (
      select webhook_id, state from ${notSwept(isoTime(now))}
      where webhook_id = ${ids} and created_at >= ${oldest}::date::timestamp at time zone 'UTC')
    select n.webhook_id,
           case when n.state = 'pending' and h.deleted_at is not null then 'cancelled' else n.state end as state,
           sum(n.deliveries)::bigint as deliveries
    from (select webhook_id, state, deliveries from read.webhook_total
          where webhook_id = ${ids} and day >= ${oldest}::date
          union all
          select webhook_id, state, -count(*) from not_swept group by webhook_id, state
          union all
          select webhook_id, 'expired', count(*) from not_swept group by webhook_id) n
    left join read.webhook_health h on h.webhook_id = n.webhook_id
    group by 1, 2`);
  const totals = new Map<string, DeliveryTotals>();
  for (const { webhook_id, state, deliveries } of rows) {
    totals.set(webhook_id, { ...(totals.get(webhook_id) ?? NO_DELIVERIES), [state]: deliveries });
  }
  return totals;
};

const dueRow = z.object({ due: z.number(), oldest_due_at: z.string().nullable() });

/** Counted per endpoint at most, so that a backlog of millions is not read. */
const MOST_COUNTED = 10_000;

/**
 * Counts a partner's due deliveries, without endpoints that are paused or whose breaker is open; at most 10,000 of each
 * endpoint. `now` in milliseconds.
 */
export const countDue = (
  db: DatabasePool,
  partnerId: string,
  now: number,
): Promise<z.output<typeof dueRow>> =>
  db.one(sql.type(dueRow)`
    select coalesce(sum(n.due), 0)::int as due, min(n.oldest) as oldest_due_at
    from read.webhook_health h
    cross join lateral (
      select count(*) as due, min(d.next_attempt_at) as oldest
      from (select next_attempt_at from read.webhook_delivery
            where webhook_id = h.webhook_id and state = 'pending' and next_attempt_at <= ${isoTime(now)}::timestamptz
              and payload_expires_at > ${isoTime(now)}::timestamptz
            order by next_attempt_at limit ${MOST_COUNTED}) d) n
    where h.partner_id = ${partnerId} and h.pending > 0 and h.paused_at is null and h.deleted_at is null
      and h.failures_in_row < ${BREAKER_OPENS_AFTER}`);
