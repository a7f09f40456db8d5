/** Named readers of the health of endpoints and of their attempts by the hour: what people are shown beyond the API's answers. */
import type pg from 'pg';
import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { isoTime } from '../../../domain/kernel/time.ts';
import {
  type AttemptResult,
  BREAKER_OPENS_AFTER,
  type DeliveryError,
} from '../../../domain/webhooks/events.ts';
import type { HealthRow } from './health.ts';

/** How an endpoint takes deliveries (`endpoint-state.sql`). `suspended`: its partner is. `held_back`: its circuit breaker is open. */
export type IntakeState = 'deleted' | 'paused' | 'suspended' | 'held_back' | 'open';

/** SQL of the `IntakeState` of the endpoint whose row of `read.webhook_health` is `h`. */
export const ENDPOINT_STATE = `work.endpoint_state(h.deleted_at, h.paused_at, h.partner_suspended_at, h.failures_in_row, ${BREAKER_OPENS_AFTER})`;

/** How people are shown an endpoint: one that is open by its last attempts. `unused`: no attempt was made. */
export type EndpointState = Exclude<IntakeState, 'open'> | 'healthy' | 'failing' | 'unused';

export interface EndpointHealth {
  readonly webhook_id: string;
  readonly name: string;
  readonly url: string;
  readonly state: EndpointState;
  /** When it was held back, paused, suspended or deleted. */
  readonly since: string | null;
  readonly pending: number;
  readonly failures_in_row: number;
  readonly last_attempt_at: string | null;
  /** Error of the last attempt; null: it succeeded, or an earlier release recorded it. */
  readonly error: DeliveryError | null;
  readonly http_status: number | null;
  /** null: nothing waits, or nothing is sent. In the past: at any moment. */
  readonly next_try_at: string | null;
}

/** The columns that `EndpointHealth` is made from. */
interface JoinedRow
  extends Omit<EndpointHealth, 'state' | 'since' | 'next_try_at'>,
    Pick<HealthRow, 'deleted_at' | 'paused_at' | 'partner_suspended_at' | 'suspended_since'> {
  readonly state: IntakeState;
  readonly next_attempt_at: string | null;
}
const joinedRow = z.custom<JoinedRow>();

export interface HealthQuery {
  readonly partnerId: string;
  /** null: all endpoints that are not deleted. */
  readonly webhookId: string | null;
  /** Minimum interval between probes of an endpoint that is held back, milliseconds (`domain/webhooks/schedule.ts`). */
  readonly probeMs: number;
  /** Milliseconds. */
  readonly now: number;
}

/** Reads the health of a partner's endpoints. */
export async function readHealth(
  db: DatabasePool,
  { partnerId, webhookId, probeMs, now }: HealthQuery,
): Promise<readonly EndpointHealth[]> {
  const wanted =
    webhookId === null ? sql.fragment`e.deleted_at is null` : sql.fragment`e.webhook_id = ${webhookId}`;
  const rows = await db.any(sql.type(joinedRow)`
    select e.webhook_id, e.name, e.url, e.deleted_at, h.paused_at, h.partner_suspended_at, coalesce(h.pending, 0) as pending,
           work.endpoint_state(e.deleted_at, h.paused_at, h.partner_suspended_at, h.failures_in_row, ${BREAKER_OPENS_AFTER}) as state,
           coalesce(h.failures_in_row, 0) as failures_in_row, h.last_attempt_at, h.last_error as error,
           h.last_http_status as http_status, h.still_since as suspended_since, n.next_attempt_at
    from read.webhook_endpoint e
    left join read.webhook_health h on h.webhook_id = e.webhook_id
    left join lateral (
      select d.next_attempt_at from read.webhook_delivery d
      where d.webhook_id = e.webhook_id and work.can_be_sent(d.state, d.payload_expires_at, ${isoTime(now)}::timestamptz)
      order by d.next_attempt_at limit 1) n on true
    where e.partner_id = ${partnerId} and ${wanted}
    order by e.created_at, e.webhook_id`);
  return rows.map((row) => healthOf(row, probeMs));
}

function stateOf({ state, failures_in_row, last_attempt_at }: JoinedRow): EndpointState {
  if (state !== 'open') return state;
  if (failures_in_row > 0) return 'failing';
  return last_attempt_at === null ? 'unused' : 'healthy';
}

function healthOf(row: JoinedRow, probeMs: number): EndpointHealth {
  const { deleted_at, paused_at, partner_suspended_at, suspended_since, next_attempt_at: _, ...shown } = row;
  const state = stateOf(row);
  const since: Partial<Record<EndpointState, string | null>> = {
    deleted: deleted_at,
    paused: paused_at,
    suspended: partner_suspended_at,
    held_back: suspended_since,
  };
  return { ...shown, state, since: since[state] ?? null, next_try_at: nextTry(row, probeMs) };
}

/** While the breaker is open, a probe goes out at an interval, whatever is due. */
function nextTry({ state, next_attempt_at, last_attempt_at }: JoinedRow, probeMs: number): string | null {
  if (next_attempt_at === null || (state !== 'open' && state !== 'held_back')) return null;
  if (state !== 'held_back' || last_attempt_at === null) return next_attempt_at;
  const probeAt = isoTime(Date.parse(last_attempt_at) + probeMs);
  return probeAt > next_attempt_at ? probeAt : next_attempt_at;
}

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
export interface FailingEndpoint
  extends Omit<EndpointHealth, 'url' | 'state' | 'since' | 'last_attempt_at' | 'next_try_at'> {
  readonly partner_id: string;
  readonly state: Exclude<IntakeState, 'deleted' | 'paused'>;
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

/** Returns whether the endpoint's breaker is open. */
export async function isHeldBack(pool: pg.Pool, webhookId: string): Promise<boolean> {
  const { rows } = await pool.query({
    name: 'is_held_back',
    text: 'select from read.webhook_health where webhook_id = $1 and failures_in_row >= $2',
    values: [webhookId, BREAKER_OPENS_AFTER],
  });
  return rows.length > 0;
}

/** The attempts of one UTC hour. */
export interface AttemptHour {
  readonly hour: string;
  readonly attempts: number;
  readonly delivered: number;
  /** Attempts with an HTTP response, and the sum of their durations in milliseconds. */
  readonly answered: number;
  readonly answered_ms: number;
}
const hourRow = z.custom<AttemptHour>();

/** No payload is kept for longer, so no attempt is made for an older delivery. */
const DELIVERABLE_DAYS = 31;

/** Returns the attempts of an endpoint by UTC hour, from `since` on (milliseconds); hours without one are left out. */
export const readAttempts = (
  db: DatabasePool,
  partnerId: string,
  webhookId: string,
  since: number,
): Promise<readonly AttemptHour[]> =>
  db.any(sql.type(hourRow)`
    select hour, sum(attempts)::bigint as attempts,
           coalesce(sum(attempts) filter (where outcome = 'delivered'), 0)::bigint as delivered,
           coalesce(sum(attempts) filter (where http_status > 0), 0)::bigint as answered,
           coalesce(sum(duration_ms) filter (where http_status > 0), 0)::bigint as answered_ms
    from read.webhook_attempt_hour
    where webhook_id = ${webhookId} and partner_id = ${partnerId} and hour >= ${isoTime(since)}::timestamptz
      and day >= (${isoTime(since)}::timestamptz at time zone 'UTC')::date - ${DELIVERABLE_DAYS}::integer
    group by hour order by hour`);

const ERRORS = {
  timeout: 'timeout',
  dns: 'DNS error',
  connect: 'connection error',
  tls: 'TLS error',
  blocked_address: 'blocked address',
  own_origin: 'the URL leads to this service',
} as const;

/** Why an attempt failed, in a few words: `HTTP 503`, `timeout`. '' where that is not known. */
export function failureText({ error, http_status }: Pick<AttemptResult, 'error' | 'http_status'>): string {
  if (error === null) return http_status === null ? '' : `HTTP ${http_status}`;
  if (error === 'redirect') return `redirect (HTTP ${http_status})`;
  return error === 'http_status' ? `HTTP ${http_status}` : ERRORS[error];
}

/** The attempts at deliveries to one endpoint on one UTC day. */
export interface AttemptDay {
  readonly webhook_id: string;
  /** `YYYY-MM-DD` */
  readonly day: string;
  readonly delivered: number;
}
const dayRow = z.custom<AttemptDay>();

/** Returns what was delivered to endpoints of a partner by UTC day, from `since` on (milliseconds); days without are left out. */
export const listDeliveredDays = (
  db: DatabasePool,
  partnerId: string,
  webhookIds: readonly string[],
  since: number,
): Promise<readonly AttemptDay[]> =>
  db.any(sql.type(dayRow)`
    select h.webhook_id, to_char(h.hour at time zone 'UTC', 'YYYY-MM-DD') as day, sum(h.attempts)::bigint as delivered
    from unnest(${sql.array([...webhookIds], 'uuid')}) w (webhook_id)
    join read.webhook_attempt_hour h on h.webhook_id = w.webhook_id and h.partner_id = ${partnerId}
      and h.outcome = 'delivered' and h.hour >= ${isoTime(since)}::timestamptz
      and h.day >= (${isoTime(since)}::timestamptz at time zone 'UTC')::date - ${DELIVERABLE_DAYS}::integer
    group by 1, 2`);
