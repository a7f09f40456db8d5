/** Named readers of deliveries and of their numbers: as partners see them at a moment, in API, dashboard and commands. */
import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { isoTime, utcDay } from '../../../domain/kernel/time.ts';
import {
  type Attempt,
  type AttemptResult,
  type DeliveredType,
  type DeliveryState,
  type DeliveryTotals,
  deliveredTypeSchema,
  NO_DELIVERIES,
  resultOf,
  WEBHOOK_HISTORY_MS,
} from '../../../domain/webhooks/events.ts';
import { columnList, type Reads, readUpToDate } from '../../../queries/reads.ts';
import { fieldsOf } from '../../tables.ts';
import { DELIVERY_COLUMNS, type DeliveryRow, type TotalRow } from './delivery.ts';

/**
 * The condition of deliveries that have expired and that the sweep of each minute has not marked yet. Millions of one partner may
 * expire at one moment and take it minutes, so an index has those of each endpoint.
 * @param at ISO 8601
 */
const isUnswept = (at: string) =>
  sql.fragment`state <> 'expired' and payload_expires_at <= ${at}::timestamptz`;

/** What a partner is not shown of a delivery. */
const HIDDEN = [
  'payload_expires_at',
  'cycle_attempts',
  'cycle_started_at',
  'suspended_ms_before',
  'last_duration_ms',
  'earlier_attempts',
  'recovery_id',
  'changed_position',
] as const;
/** A delivery in the state that it is in now. */
export type Delivery = Readonly<Omit<DeliveryRow, (typeof HIDDEN)[number] | 'state'>> & {
  readonly state: DeliveryState;
};
const deliveryRow = z.custom<Delivery>();

const plain = columnList(fieldsOf(DELIVERY_COLUMNS, [...HIDDEN, 'state', 'position']));

/** `state` follows the clock and the endpoint, which change no row. */
const columns = (now: string, cancelled: boolean) => sql.fragment`
  ${plain}, position::text as position,
  case when payload_expires_at <= ${now}::timestamptz then 'expired'
       when state = 'pending' and ${cancelled} then 'cancelled' else state end as state`;

export interface PageQuery {
  readonly webhookId: string;
  /** Whether the endpoint is deleted, so that its pending deliveries are cancelled. */
  readonly deleted: boolean;
  /** null: all of them. */
  readonly status: DeliveryState | null;
  /** Log position before which they were queued; null: from the newest on. */
  readonly before: bigint | null;
  readonly limit: number;
  /** Milliseconds. */
  readonly now: number;
}

/** States as rows have them. */
const STORED = ['pending', 'delivered', 'failed', 'expired'] as const;
const LAST = 2n ** 63n - 1n;

/**
 * The query of a page of an endpoint's history, newest first: a walk along the index of each state that it needs, which
 * ends with the page. Besides, for `expired`, what is not swept yet.
 */
export function pageQuery({ webhookId, deleted, status, before, limit, now }: PageQuery) {
  const at = isoTime(now);
  const from = sql.fragment`
    select ${columns(at, deleted)} from read.webhook_delivery
    where webhook_id = ${webhookId} and position < ${String(before ?? LAST)}::bigint
      and created_at > ${isoTime(now - WEBHOOK_HISTORY_MS)}::timestamptz`;
  const end = sql.fragment`order by webhook_delivery.position desc limit ${limit}`;
  const ofState = (state: string) => sql.fragment`(${from} and state = ${state} ${end})`;
  const notExpired = (state: string) =>
    sql.fragment`(${from} and state = ${state} and payload_expires_at > ${at}::timestamptz ${end})`;
  const parts =
    status === null
      ? STORED.map(ofState)
      : status === 'expired'
        ? [ofState('expired'), sql.fragment`(${from} and ${isUnswept(at)} ${end})`]
        : storedAs(status, deleted).map(notExpired);
  if (parts.length === 0) return null;
  return sql.fragment`
    select * from (${sql.join(parts, sql.fragment` union all `)}) page
    order by page.position::bigint desc limit ${limit}`;
}

/** Returns the stored states that appear as `status`; none: no row has that status. */
function storedAs(status: Exclude<DeliveryState, 'expired'>, deleted: boolean): string[] {
  if (status === 'pending') return deleted ? [] : ['pending'];
  if (status === 'cancelled') return deleted ? ['pending'] : [];
  return [status];
}

/** A page of an endpoint's history. */
export async function listDeliveries(db: DatabasePool, query: PageQuery): Promise<readonly Delivery[]> {
  const page = pageQuery(query);
  return page === null ? [] : db.any(sql.type(deliveryRow)`${page}`);
}

/** What a search of the dashboard asks for. Days are instants; null: any. */
export interface DeliverySearch extends Omit<PageQuery, 'before'> {
  readonly type: DeliveredType | null;
  /** ISO 8601, inclusive and exclusive. */
  readonly from: string | null;
  readonly to: string | null;
  /** The last row of the page before. */
  readonly after: { readonly created_at: string; readonly position: string } | null;
}

/** The query of a search, newest first: a walk along the index for each state and type that it needs. */
export function searchQuery(search: DeliverySearch) {
  const { webhookId, deleted, status, type, from, to, after, limit, now } = search;
  const at = isoTime(now);
  const oldest = isoTime(now - WEBHOOK_HISTORY_MS);
  const until = to ?? FAR_AHEAD;
  const cursor = after ?? { created_at: FAR_AHEAD, position: String(LAST) };
  // A bound of its own, because an index scan that has two upper bounds may begin at the wrong one.
  const newest = cursor.created_at < until ? cursor.created_at : until;
  const walk = (more: ReturnType<typeof isUnswept>) => sql.fragment`
    (select ${columns(at, deleted)} from read.webhook_delivery
     where webhook_id = ${webhookId} and created_at > ${oldest}::timestamptz
       and created_at >= ${from ?? oldest}::timestamptz and created_at <= ${newest}::timestamptz
       and created_at <> ${until}::timestamptz
       and not (created_at = ${cursor.created_at}::timestamptz and position >= ${cursor.position}::bigint) and ${more}
     order by webhook_delivery.created_at desc, webhook_delivery.position desc limit ${limit})`;
  const types = type === null ? deliveredTypeSchema.options : [type];
  const walks = (state: string, more = sql.fragment`true`) =>
    types.map((each) => walk(sql.fragment`state = ${state} and type = ${each} and ${more}`));
  const isKept = sql.fragment`payload_expires_at > ${at}::timestamptz`;
  const parts =
    status === null
      ? STORED.flatMap((state) => walks(state))
      : status === 'expired'
        ? [
            ...walks('expired'),
            walk(sql.fragment`${isUnswept(at)} and type = any (${sql.array([...types], 'text')})`),
          ]
        : storedAs(status, deleted).flatMap((state) => walks(state, isKept));
  if (parts.length === 0) return null;
  return sql.fragment`
    select * from (${sql.join(parts, sql.fragment` union all `)}) page
    order by page.created_at::timestamptz desc, page.position::bigint desc limit ${limit}`;
}

const FAR_AHEAD = '9999-01-01T00:00:00.000Z';

/** A page of a search. */
export async function searchDeliveries(
  db: DatabasePool,
  search: DeliverySearch,
): Promise<readonly Delivery[]> {
  const page = searchQuery(search);
  return page === null ? [] : db.any(sql.type(deliveryRow)`${page}`);
}

const attemptsRow =
  z.custom<
    Pick<DeliveryRow, 'earlier_attempts' | 'last_attempt_at' | 'last_duration_ms' | keyof AttemptResult>
  >();

/** Returns the last attempts at a delivery, at most twenty, the newest first. */
export async function listAttempts(
  db: DatabasePool,
  webhookId: string,
  deliveryId: string,
): Promise<readonly Attempt[]> {
  const row = await db.maybeOne(sql.type(attemptsRow)`
    select * from read.webhook_delivery where delivery_id = ${deliveryId} and webhook_id = ${webhookId}`);
  if (!row || row.last_attempt_at === null) return [];
  const { earlier_attempts, last_attempt_at: started_at, last_duration_ms: duration_ms } = row;
  const attempts = [...(earlier_attempts ?? []), { ...row, started_at, duration_ms }];
  return attempts
    .map((attempt) => ({
      ...resultOf(attempt),
      started_at: attempt.started_at,
      duration_ms: attempt.duration_ms,
    }))
    .toReversed();
}

/** One delivery of an endpoint's. `now` in milliseconds. */
export const findDelivery = (
  reads: Reads,
  { webhookId, deleted }: { readonly webhookId: string; readonly deleted: boolean },
  deliveryId: string,
  now: number,
): Promise<Delivery | null> =>
  readUpToDate(reads, () =>
    reads.db.maybeOne(sql.type(deliveryRow)`
      select ${columns(isoTime(now), deleted)} from read.webhook_delivery
      where delivery_id = ${deliveryId} and webhook_id = ${webhookId}
        and created_at > ${isoTime(now - WEBHOOK_HISTORY_MS)}::timestamptz`),
  );

const totalRow = z.custom<Pick<TotalRow, 'webhook_id' | 'deliveries'> & { readonly state: DeliveryState }>();

/**
 * Counts the deliveries of the last 90 UTC days of these endpoints by state: sums stored counts, and corrects them by rows
 * that have expired and are not swept yet. `now` in milliseconds.
 */
export async function countDeliveries(
  db: DatabasePool,
  webhookIds: readonly string[],
  now: number,
): Promise<ReadonlyMap<string, DeliveryTotals>> {
  const ids = sql.fragment`any (${sql.array(webhookIds, 'uuid')})`;
  const oldest = utcDay(now - WEBHOOK_HISTORY_MS);
  const rows = await db.any(sql.type(totalRow)`
    with unswept as materialized (
      select webhook_id, state, count(*) as deliveries from read.webhook_delivery
      where webhook_id = ${ids} and ${isUnswept(isoTime(now))}
        and created_at >= ${oldest}::date::timestamp at time zone 'UTC'
      group by webhook_id, state)
    select n.webhook_id,
           case when n.state = 'pending' and h.deleted_at is not null then 'cancelled' else n.state end as state,
           sum(n.deliveries)::bigint as deliveries
    from (select webhook_id, state, deliveries from read.webhook_total
          where webhook_id = ${ids} and day >= ${oldest}::date
          union all
          select webhook_id, state, -deliveries from unswept
          union all
          select webhook_id, 'expired', deliveries from unswept) n
    left join read.webhook_health h on h.webhook_id = n.webhook_id
    group by 1, 2`);
  const totals = new Map<string, DeliveryTotals>();
  for (const { webhook_id, state, deliveries } of rows) {
    totals.set(webhook_id, { ...(totals.get(webhook_id) ?? NO_DELIVERIES), [state]: deliveries });
  }
  return totals;
}
