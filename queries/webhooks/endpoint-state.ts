/** Which endpoints take deliveries now, and which of their deliveries are due: the readers of `endpoint-state.sql`. */
import type pg from 'pg';
import { isoTime } from '../../domain/kernel/time.ts';
import { BREAKER_OPENS_AFTER, type DeliveryError } from '../../domain/webhooks/events.ts';

/**
 * SQL of the state of the endpoint whose row of `read.webhook_health` is `h`: deleted, paused, suspended (its partner is), held_back
 * (its circuit breaker is open) or open.
 */
export const ENDPOINT_STATE = `work.endpoint_state(h.deleted_at, h.paused_at, h.partner_suspended_at, h.failures_in_row, ${BREAKER_OPENS_AFTER})`;

/** Counted per endpoint at most, so that a backlog of millions is not read. */
const MAX_DELIVERIES_COUNTED = 10_000;

export interface DueDeliveries {
  /** At most 10,000 of each endpoint. */
  readonly due: number;
  readonly oldest_due_at: string | null;
}

/**
 * Counts the due deliveries of the endpoints that take them now: of one partner, or (null) of all. `now` in milliseconds.
 */
export async function readDue(pool: pg.Pool, partnerId: string | null, now: number): Promise<DueDeliveries> {
  const { rows } = await pool.query<{ due: number; oldest: Date | null }>(
    `select coalesce(sum(n.due), 0)::int as due, min(n.oldest) as oldest
     from read.webhook_health h
     cross join lateral (
       select count(*) as due, min(d.next_attempt_at) as oldest
       from (select next_attempt_at from read.webhook_delivery
             where webhook_id = h.webhook_id and work.is_due(state, next_attempt_at, payload_expires_at, $1)
             order by next_attempt_at limit ${MAX_DELIVERIES_COUNTED}) d) n
     where h.deleted_at is null and h.pending > 0 and ${ENDPOINT_STATE} = 'open' ${partnerId === null ? '' : 'and h.partner_id = $2'}`,
    [new Date(now), ...(partnerId === null ? [] : [partnerId])],
  );
  const { due = 0, oldest = null } = rows[0] ?? {};
  return { due, oldest_due_at: oldest && isoTime(oldest.getTime()) };
}

/** An endpoint whose last attempts failed. */
export interface FailingEndpoint {
  readonly webhook_id: string;
  readonly partner_id: string;
  readonly name: string;
  readonly pending: number;
  readonly state: 'suspended' | 'held_back' | 'open';
  readonly failures_in_row: number;
  readonly error: DeliveryError | null;
  readonly http_status: number | null;
}

/** Lists endpoints, neither paused nor deleted, with so many failures in a row: of one partner, or (null) of all. */
export async function listFailingEndpoints(
  pool: pg.Pool,
  partnerId: string | null,
  minFailures: number,
): Promise<FailingEndpoint[]> {
  const { rows } = await pool.query<FailingEndpoint>(
    `select h.webhook_id, h.partner_id, e.name, h.pending::float8 as pending, ${ENDPOINT_STATE} as state, h.failures_in_row,
            h.last_error as error, h.last_http_status as http_status
     from read.webhook_health h join read.webhook_endpoint e on e.webhook_id = h.webhook_id
     where e.deleted_at is null and h.deleted_at is null and h.failures_in_row >= $1 and ${ENDPOINT_STATE} <> 'paused'
       ${partnerId === null ? '' : 'and h.partner_id = $2'}
     order by e.created_at, e.webhook_id`,
    [minFailures, ...(partnerId === null ? [] : [partnerId])],
  );
  return rows;
}
