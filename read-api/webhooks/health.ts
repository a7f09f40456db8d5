/** The health of endpoints, for the dashboard. */
import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { isoTime } from '../../domain/kernel/time.ts';
import { BREAKER_OPENS_AFTER, deliveryErrorSchema } from '../../domain/webhooks/events.ts';
import type { EndpointHealth, EndpointState, HourOfAttempts } from './health-schemas.ts';

const healthRow = z.object({
  webhook_id: z.string(),
  name: z.string(),
  url: z.string(),
  /** As `queries/webhooks/endpoint-state.sql` says. */
  state: z.enum(['deleted', 'paused', 'suspended', 'held_back', 'open']),
  deleted_at: z.string().nullable(),
  paused_at: z.string().nullable(),
  partner_suspended_at: z.string().nullable(),
  pending: z.number(),
  failures_in_row: z.number(),
  last_attempt_at: z.string().nullable(),
  last_error: deliveryErrorSchema.nullable(),
  last_http_status: z.number().nullable(),
  still_since: z.string().nullable(),
  next_attempt_at: z.string().nullable(),
});
type HealthRow = z.output<typeof healthRow>;

export interface HealthQuery {
  readonly partnerId: string;
  /** null: all endpoints that are not deleted. */
  readonly webhookId: string | null;
  /** Minimum interval between probes of an endpoint that is held back, milliseconds (`domain/webhooks/schedule.ts`). */
  readonly probeMs: number;
  /** Milliseconds. */
  readonly now: number;
}

/** Returns how a partner's endpoints take their deliveries. */
export async function readHealth(
  db: DatabasePool,
  { partnerId, webhookId, probeMs, now }: HealthQuery,
): Promise<readonly EndpointHealth[]> {
  const wanted =
    webhookId === null ? sql.fragment`e.deleted_at is null` : sql.fragment`e.webhook_id = ${webhookId}`;
  const rows = await db.any(sql.type(healthRow)`
    select e.webhook_id, e.name, e.url, e.deleted_at, h.paused_at, h.partner_suspended_at, coalesce(h.pending, 0) as pending,
           work.endpoint_state(e.deleted_at, h.paused_at, h.partner_suspended_at, h.failures_in_row, ${BREAKER_OPENS_AFTER}) as state,
           coalesce(h.failures_in_row, 0) as failures_in_row, h.last_attempt_at, h.last_error, h.last_http_status,
           h.still_since, n.next_attempt_at
    from read.webhook_endpoint e
    left join read.webhook_health h on h.webhook_id = e.webhook_id
    left join lateral (
      select d.next_attempt_at from read.webhook_delivery d
      where d.webhook_id = e.webhook_id and d.state = 'pending' and d.payload_expires_at > ${isoTime(now)}::timestamptz
      order by d.next_attempt_at limit 1) n on true
    where e.partner_id = ${partnerId} and ${wanted}
    order by e.created_at, e.webhook_id`);
  return rows.map((row) => healthOf(row, probeMs));
}

function stateOf({ state, failures_in_row, last_attempt_at }: HealthRow): EndpointState {
  if (state !== 'open') return state;
  if (failures_in_row > 0) return 'failing';
  return last_attempt_at === null ? 'unused' : 'healthy';
}

function healthOf(row: HealthRow, probeMs: number): EndpointHealth {
  const { webhook_id, name, url, pending, failures_in_row, last_attempt_at, last_error, last_http_status } =
    row;
  const state = stateOf(row);
  const since = {
    deleted: row.deleted_at,
    paused: row.paused_at,
    suspended: row.partner_suspended_at,
    held_back: row.still_since,
  };
  return {
    ...{ webhook_id, name, url, state, pending, failures_in_row, last_attempt_at },
    since: state in since ? since[state as keyof typeof since] : null,
    error: last_error,
    http_status: last_http_status,
    next_try_at: nextTry(row, probeMs),
  };
}

/** While the breaker is open, a probe goes out at an interval, whatever is due. */
function nextTry({ state, next_attempt_at, last_attempt_at }: HealthRow, probeMs: number): string | null {
  if (next_attempt_at === null || (state !== 'open' && state !== 'held_back')) return null;
  if (state !== 'held_back' || last_attempt_at === null) return next_attempt_at;
  const probeAt = isoTime(Date.parse(last_attempt_at) + probeMs);
  return probeAt > next_attempt_at ? probeAt : next_attempt_at;
}

const hourRow = z.object({
  hour: z.string(),
  attempts: z.number(),
  delivered: z.number(),
  answered: z.number(),
  answered_ms: z.number(),
});

/** No payload is kept for longer, so no attempt is made for an older delivery. */
const DELIVERABLE_DAYS = 31;

/** Returns the attempts of an endpoint by UTC hour, from `since` on (milliseconds); hours without one are left out. */
export const readAttempts = (
  db: DatabasePool,
  partnerId: string,
  webhookId: string,
  since: number,
): Promise<readonly HourOfAttempts[]> =>
  db.any(sql.type(hourRow)`
    select hour, sum(attempts)::bigint as attempts,
           coalesce(sum(attempts) filter (where outcome = 'delivered'), 0)::bigint as delivered,
           coalesce(sum(attempts) filter (where http_status > 0), 0)::bigint as answered,
           coalesce(sum(duration_ms) filter (where http_status > 0), 0)::bigint as answered_ms
    from read.webhook_attempt_hour
    where webhook_id = ${webhookId} and partner_id = ${partnerId} and hour >= ${isoTime(since)}::timestamptz
      and day >= (${isoTime(since)}::timestamptz at time zone 'UTC')::date - ${DELIVERABLE_DAYS}::integer
    group by hour order by hour`);
