/** Deliveries in the read model `deliveries`: the rows of deliveries and of their counts, and how events change them. */
import { unreachable } from '../../../domain/kernel/decider.ts';
import type { EventOf } from '../../../domain/kernel/events.ts';
import { isAhead } from '../../../domain/kernel/time.ts';
import {
  type Attempt,
  type AttemptResult,
  type DeliveredType,
  type DeliveryEvent,
  type DeliveryRef,
  type DeliveryState,
  type deliveryEvents,
  resultOf,
  type SignedBy,
} from '../../../domain/webhooks/events.ts';
import type { Columns } from '../../tables.ts';
import { addDue, changeHealth, type Health, healthOf, setHealth, suspendedMs } from './health.ts';
import {
  addTruncatedRecovery,
  countedBy,
  countInRecovery,
  leaveRecovery,
  type Recoveries,
} from './recovery.ts';

/** A row of `webhook_delivery`, with the result of the last attempt; instants in ISO 8601. */
export interface DeliveryRow extends DeliveryRef, AttemptResult {
  readonly event_id: string;
  readonly type: DeliveredType;
  readonly created_at: string;
  /** Log position of its first event. */
  readonly position: string;
  readonly payload_expires_at: string;
  /** Whether the newest secret alone signs it. */
  readonly newest_secret_only: boolean;
  state: Exclude<DeliveryState, 'cancelled'>;
  cycle: number;
  attempts: number;
  cycle_attempts: number;
  cycle_started_at: string;
  /** Total suspension of the endpoint when the cycle began, milliseconds. */
  suspended_ms_before: number;
  last_attempt_at: string | null;
  last_duration_ms: number | null;
  /** The secrets that signed the last attempt; null: none was made, or release 0.2.0 made it. */
  signed_by: SignedBy | null;
  delivered_at: string | null;
  next_attempt_at: string | null;
  /** The attempts before the last one, the oldest first; null: none. */
  earlier_attempts: readonly Attempt[] | null;
  /** The recovery that its cycle is part of. */
  recovery_id: string | null;
  /** Log position of its last event. */
  changed_position: string;
}

export const DELIVERY_COLUMNS: Columns<DeliveryRow> = {
  delivery_id: 'uuid',
  webhook_id: 'uuid',
  partner_id: 'uuid',
  event_id: 'text',
  type: 'text',
  created_at: 'timestamptz',
  position: 'position',
  payload_expires_at: 'timestamptz',
  newest_secret_only: 'boolean',
  state: 'text',
  cycle: 'integer',
  attempts: 'integer',
  cycle_attempts: 'integer',
  cycle_started_at: 'timestamptz',
  suspended_ms_before: ['bigint', 'stood_still_ms'],
  last_attempt_at: 'timestamptz',
  last_duration_ms: 'integer',
  signed_by: 'text',
  delivered_at: 'timestamptz',
  next_attempt_at: 'timestamptz',
  http_status: 'integer',
  error: 'text',
  earlier_attempts: 'json',
  recovery_id: 'uuid',
  changed_position: 'position',
};

/** Columns that the fold neither reads nor changes, so that a batch does not load them. */
export const UNREAD_FIELDS = ['event_id', 'type', 'position', 'payload_expires_at'] as const;
/** A delivery as the fold loads it. */
export type LoadedDelivery = Omit<DeliveryRow, (typeof UNREAD_FIELDS)[number]>;

/** Attempts that a delivery keeps before its last one. */
const MAX_EARLIER_ATTEMPTS = 19;

/** A row of `webhook_total`. */
export interface TotalRow {
  readonly webhook_id: string;
  readonly partner_id: string;
  /** UTC day of the deliveries' `created_at`, `YYYY-MM-DD`. */
  readonly day: string;
  readonly state: DeliveryRow['state'];
  /** Difference to the stored number. */
  deliveries: number;
}

export const TOTAL_COLUMNS: Columns<TotalRow> = {
  webhook_id: 'uuid',
  partner_id: 'uuid',
  day: 'date',
  state: 'text',
  deliveries: 'bigint',
};

/** A row of `webhook_attempt_hour`. */
export interface AttemptHourRow {
  readonly webhook_id: string;
  readonly partner_id: string;
  /** UTC day of the delivery's `created_at`, `YYYY-MM-DD`. */
  readonly day: string;
  readonly hour: string;
  readonly outcome: string;
  /** 0: no response. */
  readonly http_status: number;
  /** Difference to the stored numbers. */
  attempts: number;
  duration_ms: number;
  /** Log position of the last of them. */
  changed_position: string;
}

export const ATTEMPT_HOUR_COLUMNS: Columns<AttemptHourRow> = {
  webhook_id: 'uuid',
  partner_id: 'uuid',
  day: 'date',
  hour: 'timestamptz',
  outcome: 'text',
  http_status: 'integer',
  attempts: 'bigint',
  duration_ms: 'bigint',
  changed_position: 'position',
};

/** The rows of a batch as of each event, and those to be written. */
export interface Fold extends Health, Recoveries {
  readonly deliveries: Map<string, LoadedDelivery>;
  readonly added: Map<string, DeliveryRow>;
  readonly changed: Set<LoadedDelivery>;
  readonly totals: Map<string, TotalRow>;
  readonly attempts: Map<string, AttemptHourRow>;
}

type Data<Name extends DeliveryEvent['type']> = EventOf<Pick<typeof deliveryEvents, Name>>['data'];

/** Applies an event of a delivery. Only the first event of a delivery, a cycle or an attempt counts; repeats are ignored. */
export function foldDelivery(fold: Fold, { type, data }: DeliveryEvent, position: bigint): void {
  fold.position = position.toString();
  switch (type) {
    case 'webhooks.DeliveryQueued.v1':
      queued(fold, data);
      return;
    case 'webhooks.DeliveryAttempted.v1':
      attempted(fold, data);
      return;
    case 'webhooks.DeliveryRetried.v1':
      retried(fold, data);
      return;
    case 'webhooks.DeliveriesRetried.v1':
      retriedAll(fold, data);
      return;
    case 'webhooks.DeliveriesExpired.v1':
      for (const id of data.delivery_ids) expired(fold, id);
      return;
    default:
      unreachable(type);
  }
}

function queued(fold: Fold, data: Data<'webhooks.DeliveryQueued.v1'>): void {
  const { source_position, ...known } = data;
  const health = healthOf(fold, data);
  if (source_position !== null && BigInt(source_position) > BigInt(health.fanned_out_to ?? -1)) {
    setHealth(fold, health, { fanned_out_to: source_position });
  }
  if (fold.deliveries.has(data.delivery_id)) return;
  const row: DeliveryRow = {
    ...known,
    ...resultOf({}),
    position: fold.position,
    state: 'pending',
    cycle: 1,
    attempts: 0,
    cycle_attempts: 0,
    cycle_started_at: data.created_at,
    suspended_ms_before: suspendedMs(health, data.created_at),
    last_attempt_at: null,
    last_duration_ms: null,
    signed_by: null,
    delivered_at: null,
    next_attempt_at: data.created_at,
    earlier_attempts: null,
    recovery_id: null,
    changed_position: fold.position,
  };
  fold.deliveries.set(row.delivery_id, row);
  fold.added.set(row.delivery_id, row);
  count(fold, row, 1);
  addDue(fold, row, data.created_at);
}

function attempted(fold: Fold, data: Data<'webhooks.DeliveryAttempted.v1'>): void {
  const row = fold.deliveries.get(data.delivery_id);
  if (row?.state !== 'pending' || row.cycle !== data.cycle || row.cycle_attempts + 1 !== data.attempt) return;
  change(fold, row, {
    ...(data.state === 'delivered' ? { recovery_id: row.recovery_id ?? countedBy(fold, row) } : {}),
    state: data.state,
    earlier_attempts: withLastAttempt(row),
    attempts: row.attempts + 1,
    cycle_attempts: data.attempt,
    last_attempt_at: data.started_at,
    last_duration_ms: durationMs(data),
    signed_by: data.signed_by,
    delivered_at: data.state === 'delivered' ? data.ended_at : null,
    next_attempt_at: data.next_attempt_at,
    ...resultOf(data),
  });
  countAttempt(fold, row, data);
  // A receiver that has not got the new secret yet refuses the test of a rotation, and takes all other deliveries.
  if (row.newest_secret_only) return;
  changeHealth(fold, data, data.ended_at, (health) => ({
    failures_in_row: data.error === null ? 0 : health.failures_in_row + 1,
    last_attempt_at: later(health.last_attempt_at, data.started_at),
    last_error: data.error,
    last_http_status: data.http_status,
  }));
}

/** No event may stop the projection, and the column is an integer. */
const MAX_DURATION_MS = 2 ** 31 - 1;

const durationMs = ({
  started_at,
  ended_at,
}: Pick<Data<'webhooks.DeliveryAttempted.v1'>, 'started_at' | 'ended_at'>): number =>
  Math.min(MAX_DURATION_MS, Math.max(0, Date.parse(ended_at) - Date.parse(started_at)));

function withLastAttempt(row: LoadedDelivery): readonly Attempt[] | null {
  const { last_attempt_at: started_at, last_duration_ms: duration_ms } = row;
  if (started_at === null) return null;
  const last = { started_at, duration_ms, ...resultOf(row) };
  return [...(row.earlier_attempts ?? []), last].slice(-MAX_EARLIER_ATTEMPTS);
}

function retried(fold: Fold, data: Data<'webhooks.DeliveryRetried.v1'>): void {
  const row = fold.deliveries.get(data.delivery_id);
  if (!row || row.state === 'pending' || row.state === 'expired' || row.cycle + 1 !== data.cycle) return;
  // The recovery that an earlier cycle was part of keeps its count.
  row.recovery_id = null;
  change(fold, row, newCycle(fold, row, data.retried_at));
}

const newCycle = (fold: Fold, row: LoadedDelivery, at: string): Partial<LoadedDelivery> => ({
  state: 'pending',
  cycle: row.cycle + 1,
  cycle_attempts: 0,
  cycle_started_at: at,
  suspended_ms_before: suspendedMs(healthOf(fold, row), at),
  delivered_at: null,
  next_attempt_at: at,
});

/**
 * Applies a batch of a recovery. A delivery that failed, or that waits for its next attempt, begins a new cycle. One that is due
 * already, and so may be under way, stays as it is: it would be sent twice otherwise.
 */
function retriedAll(fold: Fold, data: Data<'webhooks.DeliveriesRetried.v1'>): void {
  const { recovery_id, retried_at } = data;
  if (!fold.recoveries.has(recovery_id)) addTruncatedRecovery(fold, data, fold.position);
  for (const [id, cycle] of data.deliveries) {
    const row = fold.deliveries.get(id);
    if (!row || row.state === 'expired' || row.recovery_id === recovery_id || row.cycle + 1 !== cycle)
      continue;
    if (row.state === 'pending') leaveRecovery(fold, row.recovery_id);
    row.recovery_id = null;
    const waits = row.state === 'pending' && (row.next_attempt_at ?? '') > retried_at;
    const isRetried = row.state === 'failed' || waits;
    change(fold, row, { ...(isRetried ? newCycle(fold, row, retried_at) : {}), recovery_id });
  }
}

function expired(fold: Fold, deliveryId: string): void {
  const row = fold.deliveries.get(deliveryId);
  if (row && row.state !== 'expired') change(fold, row, { state: 'expired', next_attempt_at: null });
}

function change(fold: Fold, row: LoadedDelivery, to: Partial<LoadedDelivery>): void {
  count(fold, row, -1);
  Object.assign(row, to, { changed_position: fold.position });
  count(fold, row, 1);
  if (!fold.added.has(row.delivery_id)) fold.changed.add(row);
  if (row.next_attempt_at !== null) addDue(fold, row, row.next_attempt_at);
}

function count(fold: Fold, row: LoadedDelivery, more: 1 | -1): void {
  const { webhook_id, partner_id, state } = row;
  countInRecovery(fold, row.recovery_id, state, more);
  const day = row.created_at.slice(0, 10);
  const key = `${webhook_id} ${day} ${state}`;
  const total = fold.totals.get(key) ?? { webhook_id, partner_id, day, state, deliveries: 0 };
  total.deliveries += more;
  fold.totals.set(key, total);
  if (state !== 'pending') return;
  const health = healthOf(fold, row);
  setHealth(fold, health, { pending: health.pending + more });
}

function countAttempt(
  fold: Fold,
  { webhook_id, partner_id, created_at }: LoadedDelivery,
  data: Data<'webhooks.DeliveryAttempted.v1'>,
): void {
  const { started_at, error, http_status: status } = data;
  const day = created_at.slice(0, 10);
  const hour = `${started_at.slice(0, 13)}:00:00Z`;
  const outcome = error ?? 'delivered';
  const http_status = status ?? 0;
  const key = `${webhook_id} ${day} ${hour} ${outcome} ${http_status}`;
  const ids = { webhook_id, partner_id, day, hour, outcome, http_status };
  const empty = { ...ids, attempts: 0, duration_ms: 0, changed_position: '' };
  const row: AttemptHourRow = fold.attempts.get(key) ?? empty;
  row.changed_position = fold.position;
  row.attempts += 1;
  row.duration_ms += durationMs(data);
  fold.attempts.set(key, row);
}

/** Returns the later of two ISO 8601 times, unless the known one is so far ahead that a fast clock must have set it. */
const later = (known: string | null, other: string): string =>
  known !== null && known > other && !isAhead(Date.parse(known), Date.parse(other)) ? known : other;
