import { isAhead } from '../../domain/kernel/ahead.ts';
import { unreachable } from '../../domain/kernel/decider.ts';
import type { EventOf } from '../../domain/kernel/events.ts';
import type { DeliveryEvent, deliveryEvents } from '../../domain/webhooks/events.ts';
import { addDue, changeHealth, type Health, healthOf, suspendedMs } from './endpoint-health.ts';

/** A row of `webhook_delivery`; instants in ISO 8601. */
export interface DeliveryRow {
  readonly delivery_id: string;
  readonly webhook_id: string;
  readonly partner_id: string;
  readonly created_at: string;
  state: 'pending' | 'delivered' | 'failed' | 'expired';
  cycle: number;
  attempts: number;
  cycle_attempts: number;
  cycle_started_at: string;
  /** Total suspension of the endpoint when the cycle began, milliseconds. */
  stood_still_ms: number;
  last_attempt_at: string | null;
  delivered_at: string | null;
  next_attempt_at: string | null;
  http_status: number | null;
  error: string | null;
}

/** A new row with its immutable columns. */
export interface NewDelivery extends DeliveryRow {
  readonly event_id: string;
  readonly type: string;
  readonly position: string;
  readonly payload_expires_at: string;
}

export interface TotalRow {
  readonly webhook_id: string;
  readonly partner_id: string;
  /** UTC day of the deliveries' `created_at`, `YYYY-MM-DD`. */
  readonly day: string;
  readonly state: DeliveryRow['state'];
  /** Difference to the stored number. */
  deliveries: number;
}

export interface AttemptsRow {
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
}

/** The rows of a batch as of each event, and those to be written. */
export interface Fold extends Health {
  readonly deliveries: Map<string, DeliveryRow>;
  readonly added: Map<string, NewDelivery>;
  readonly changed: Set<DeliveryRow>;
  readonly totals: Map<string, TotalRow>;
  readonly attempts: Map<string, AttemptsRow>;
}

type Data<Name extends DeliveryEvent['type']> = EventOf<Pick<typeof deliveryEvents, Name>>['data'];

/** Applies an event of a delivery. Only the first event of a delivery, a cycle or an attempt counts; repeats are ignored. */
export const foldDelivery = (fold: Fold, { type, data }: DeliveryEvent, position: bigint): void => {
  switch (type) {
    case 'webhooks.DeliveryQueued.v1':
      queued(fold, data, position);
      return;
    case 'webhooks.DeliveryAttempted.v1':
      attempted(fold, data);
      return;
    case 'webhooks.DeliveryRetried.v1':
      retried(fold, data);
      return;
    case 'webhooks.DeliveriesExpired.v1':
      for (const id of data.delivery_ids) expired(fold, id);
      return;
    default:
      unreachable(type);
  }
};

const queued = (fold: Fold, data: Data<'webhooks.DeliveryQueued.v1'>, position: bigint): void => {
  const { source_position, ...known } = data;
  const health = healthOf(fold, data);
  if (source_position !== null && BigInt(source_position) > BigInt(health.fanned_out_to ?? -1)) {
    health.fanned_out_to = source_position;
    fold.changedHealth.add(health);
  }
  if (fold.deliveries.has(data.delivery_id)) return;
  const row: NewDelivery = {
    ...known,
    position: position.toString(),
    state: 'pending',
    cycle: 1,
    attempts: 0,
    cycle_attempts: 0,
    cycle_started_at: data.created_at,
    stood_still_ms: suspendedMs(health, data.created_at),
    last_attempt_at: null,
    delivered_at: null,
    next_attempt_at: data.created_at,
    http_status: null,
    error: null,
  };
  fold.deliveries.set(row.delivery_id, row);
  fold.added.set(row.delivery_id, row);
  count(fold, row, 1);
  addDue(fold, row, data.created_at);
};

const attempted = (fold: Fold, data: Data<'webhooks.DeliveryAttempted.v1'>): void => {
  const row = fold.deliveries.get(data.delivery_id);
  if (row?.state !== 'pending' || row.cycle !== data.cycle || row.cycle_attempts + 1 !== data.attempt) return;
  change(fold, row, {
    state: data.state,
    attempts: row.attempts + 1,
    cycle_attempts: data.attempt,
    last_attempt_at: data.started_at,
    delivered_at: data.state === 'delivered' ? data.ended_at : null,
    next_attempt_at: data.next_attempt_at,
    http_status: data.http_status,
    error: data.error,
  });
  countAttempt(fold, row, data);
  changeHealth(fold, data, data.ended_at, (health) => ({
    failures_in_row: data.error === null ? 0 : health.failures_in_row + 1,
    last_attempt_at: later(health.last_attempt_at, data.started_at),
  }));
};

const retried = (fold: Fold, data: Data<'webhooks.DeliveryRetried.v1'>): void => {
  const row = fold.deliveries.get(data.delivery_id);
  if (!row || row.state === 'pending' || row.state === 'expired' || row.cycle + 1 !== data.cycle) return;
  change(fold, row, {
    state: 'pending',
    cycle: data.cycle,
    cycle_attempts: 0,
    cycle_started_at: data.retried_at,
    stood_still_ms: suspendedMs(healthOf(fold, data), data.retried_at),
    delivered_at: null,
    next_attempt_at: data.retried_at,
  });
};

const expired = (fold: Fold, deliveryId: string): void => {
  const row = fold.deliveries.get(deliveryId);
  if (row && row.state !== 'expired') change(fold, row, { state: 'expired', next_attempt_at: null });
};

const change = (fold: Fold, row: DeliveryRow, to: Partial<DeliveryRow>): void => {
  count(fold, row, -1);
  Object.assign(row, to);
  count(fold, row, 1);
  if (!fold.added.has(row.delivery_id)) fold.changed.add(row);
  if (row.next_attempt_at !== null) addDue(fold, row, row.next_attempt_at);
};

const count = (fold: Fold, row: DeliveryRow, more: 1 | -1): void => {
  const { webhook_id, partner_id, state } = row;
  const day = row.created_at.slice(0, 10);
  const key = `${webhook_id} ${day} ${state}`;
  const total = fold.totals.get(key) ?? { webhook_id, partner_id, day, state, deliveries: 0 };
  total.deliveries += more;
  fold.totals.set(key, total);
  if (state !== 'pending') return;
  const health = healthOf(fold, row);
  health.pending += more;
  fold.changedHealth.add(health);
};

const countAttempt = (
  fold: Fold,
  { webhook_id, partner_id, created_at }: DeliveryRow,
  { started_at, ended_at, error, http_status: status }: Data<'webhooks.DeliveryAttempted.v1'>,
): void => {
  const day = created_at.slice(0, 10);
  const hour = `${started_at.slice(0, 13)}:00:00Z`;
  const outcome = error ?? 'delivered';
  const http_status = status ?? 0;
  const key = `${webhook_id} ${day} ${hour} ${outcome} ${http_status}`;
  const none = { webhook_id, partner_id, day, hour, outcome, http_status, attempts: 0, duration_ms: 0 };
  const row: AttemptsRow = fold.attempts.get(key) ?? none;
  row.attempts += 1;
  row.duration_ms += Math.max(0, Date.parse(ended_at) - Date.parse(started_at));
  fold.attempts.set(key, row);
};

/** Returns the later of two ISO 8601 times, unless the known one is so far ahead that a fast clock must have set it. */
const later = (known: string | null, other: string): string =>
  known !== null && known > other && !isAhead(Date.parse(known), Date.parse(other)) ? known : other;
