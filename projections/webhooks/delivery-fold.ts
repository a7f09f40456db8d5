/** The pure part of the projection `deliveries`: what events change in rows of deliveries and in an endpoint's health. */

import { unreachable } from '../../domain/kernel/decider.ts';
import type { EventOf } from '../../domain/kernel/events.ts';
import { isAhead } from '../../domain/kernel/time.ts';
import { partnerEvents } from '../../domain/partners/events.ts';
import {
  BREAKER_OPENS_AFTER,
  type DeliveryEvent,
  type deliveryEvents,
  type EndpointChangeEvent,
  type SnapshottedEndpoint,
} from '../../domain/webhooks/events.ts';

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
  last_duration_ms: number | null;
  delivered_at: string | null;
  next_attempt_at: string | null;
  http_status: number | null;
  error: string | null;
  /** The earlier attempts, the oldest first; null: none. */
  earlier_attempts: readonly EarlierAttempt[] | null;
  /** The recovery that its cycle is part of. */
  recovery_id: string | null;
  /** Log position of its last event. */
  changed_position: string;
}

/** An attempt that is not the delivery's last. */
export interface EarlierAttempt {
  readonly started_at: string;
  /** null: an earlier release recorded it. */
  readonly duration_ms: number | null;
  readonly http_status: number | null;
  readonly error: string | null;
}

/** Attempts that a delivery keeps before its last one. */
const MAX_EARLIER_ATTEMPTS = 19;

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
  /** Log position of the last of them. */
  changed_position: string;
}

/** A row of `webhook_recovery`; instants in ISO 8601. Its deliveries are counted by their state while they are part of it. */
export interface RecoveryRow {
  readonly recovery_id: string;
  readonly webhook_id: string;
  readonly partner_id: string;
  readonly since: string;
  readonly held_back: boolean;
  /** Number of deliveries, as counted at the request. */
  readonly deliveries: number;
  readonly created_at: string;
  /** Log position of the request, as text. */
  readonly position: string;
  completed_at: string | null;
  pending: number;
  delivered: number;
  failed: number;
  cancelled: number;
  expired: number;
}

/** The rows of a batch as of each event, and those to be written. */
export interface Fold extends Health, Recoveries {
  readonly deliveries: Map<string, DeliveryRow>;
  readonly added: Map<string, NewDelivery>;
  readonly changed: Set<DeliveryRow>;
  readonly totals: Map<string, TotalRow>;
  readonly attempts: Map<string, AttemptsRow>;
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
  const row: NewDelivery = {
    ...known,
    position: fold.position,
    state: 'pending',
    cycle: 1,
    attempts: 0,
    cycle_attempts: 0,
    cycle_started_at: data.created_at,
    stood_still_ms: suspendedMs(health, data.created_at),
    last_attempt_at: null,
    last_duration_ms: null,
    delivered_at: null,
    next_attempt_at: data.created_at,
    http_status: null,
    error: null,
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
    state: data.state,
    earlier_attempts: withLastAttempt(row),
    attempts: row.attempts + 1,
    cycle_attempts: data.attempt,
    last_attempt_at: data.started_at,
    last_duration_ms: durationMs(data),
    delivered_at: data.state === 'delivered' ? data.ended_at : null,
    next_attempt_at: data.next_attempt_at,
    http_status: data.http_status,
    error: data.error,
  });
  countAttempt(fold, row, data);
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

function withLastAttempt(row: DeliveryRow): DeliveryRow['earlier_attempts'] {
  const { earlier_attempts, last_attempt_at, last_duration_ms, http_status, error } = row;
  if (last_attempt_at === null) return null;
  const last = { started_at: last_attempt_at, duration_ms: last_duration_ms, http_status, error };
  return [...(earlier_attempts ?? []), last].slice(-MAX_EARLIER_ATTEMPTS);
}

function retried(fold: Fold, data: Data<'webhooks.DeliveryRetried.v1'>): void {
  const row = fold.deliveries.get(data.delivery_id);
  if (!row || row.state === 'pending' || row.state === 'expired' || row.cycle + 1 !== data.cycle) return;
  // The recovery that an earlier cycle was part of keeps its count.
  row.recovery_id = null;
  change(fold, row, newCycle(fold, row, data.retried_at));
}

const newCycle = (fold: Fold, row: DeliveryRow, at: string): Partial<DeliveryRow> => ({
  state: 'pending',
  cycle: row.cycle + 1,
  cycle_attempts: 0,
  cycle_started_at: at,
  stood_still_ms: suspendedMs(healthOf(fold, row), at),
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

function change(fold: Fold, row: DeliveryRow, to: Partial<DeliveryRow>): void {
  count(fold, row, -1);
  Object.assign(row, to, { changed_position: fold.position });
  count(fold, row, 1);
  if (!fold.added.has(row.delivery_id)) fold.changed.add(row);
  if (row.next_attempt_at !== null) addDue(fold, row, row.next_attempt_at);
}

function count(fold: Fold, row: DeliveryRow, more: 1 | -1): void {
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
  { webhook_id, partner_id, created_at }: DeliveryRow,
  data: Data<'webhooks.DeliveryAttempted.v1'>,
): void {
  const { started_at, error, http_status: status } = data;
  const day = created_at.slice(0, 10);
  const hour = `${started_at.slice(0, 13)}:00:00Z`;
  const outcome = error ?? 'delivered';
  const http_status = status ?? 0;
  const key = `${webhook_id} ${day} ${hour} ${outcome} ${http_status}`;
  const none = {
    webhook_id,
    partner_id,
    day,
    hour,
    outcome,
    http_status,
    attempts: 0,
    duration_ms: 0,
    changed_position: '',
  };
  const row: AttemptsRow = fold.attempts.get(key) ?? none;
  row.changed_position = fold.position;
  row.attempts += 1;
  row.duration_ms += durationMs(data);
  fold.attempts.set(key, row);
}

/** Returns the later of two ISO 8601 times, unless the known one is so far ahead that a fast clock must have set it. */
const later = (known: string | null, other: string): string =>
  known !== null && known > other && !isAhead(Date.parse(known), Date.parse(other)) ? known : other;

/** The recoveries that a batch may change. */
export interface Recoveries {
  readonly recoveries: Map<string, RecoveryRow>;
  readonly changedRecoveries: Set<RecoveryRow>;
}

const NO_COUNTS = { pending: 0, delivered: 0, failed: 0, cancelled: 0, expired: 0 };

function addRecovery(fold: Recoveries, row: RecoveryRow): void {
  if (fold.recoveries.has(row.recovery_id)) return;
  fold.recoveries.set(row.recovery_id, row);
  fold.changedRecoveries.add(row);
}

/** In a rebuild, the request may have been truncated behind a snapshot. */
function addTruncatedRecovery(
  fold: Recoveries,
  data: Data<'webhooks.DeliveriesRetried.v1'>,
  position: string,
): void {
  const { recovery_id, webhook_id, partner_id, since, requested_at: created_at, retried_at } = data;
  const known = { recovery_id, webhook_id, partner_id, since, created_at, position };
  addRecovery(fold, { ...known, ...NO_COUNTS, held_back: false, deliveries: 0, completed_at: retried_at });
}

function countInRecovery(
  fold: Recoveries,
  recoveryId: string | null,
  state: keyof typeof NO_COUNTS,
  more: 1 | -1,
): void {
  const recovery = recoveryId === null ? undefined : fold.recoveries.get(recoveryId);
  if (!recovery) return;
  recovery[state] += more;
  fold.changedRecoveries.add(recovery);
}

function completeRecovery(fold: Recoveries, recoveryId: string, completedAt: string | null): void {
  const recovery = fold.recoveries.get(recoveryId);
  if (!recovery) return;
  recovery.completed_at = completedAt;
  fold.changedRecoveries.add(recovery);
}

/** A pending delivery leaves its recovery for a later one. */
function leaveRecovery(fold: Recoveries, recoveryId: string | null): void {
  countInRecovery(fold, recoveryId, 'pending', -1);
  countInRecovery(fold, recoveryId, 'cancelled', 1);
}

/** A row of `webhook_health`; positions as text. */
export interface HealthRow {
  readonly webhook_id: string;
  readonly partner_id: string;
  pending: number;
  failures_in_row: number;
  last_attempt_at: string | null;
  /** Why the last attempt failed; null: it succeeded, or there was none. */
  last_error: string | null;
  last_http_status: number | null;
  paused_at: string | null;
  /** Since when the partner is suspended or deleted. */
  partner_suspended_at: string | null;
  deleted_at: string | null;
  /** Start of the current suspension; null: not suspended. */
  still_since: string | null;
  /** Total of ended suspensions, milliseconds. */
  still_ms: number;
  fanned_out_to: string | null;
  last_position: string | null;
  /** Log position of the last event of the endpoint or of one of its deliveries. */
  changed_position: string;
}

/** Endpoint, partner, and the time from which something may be due (ISO 8601; '' means now). */
export type Due = readonly [webhookId: string, partnerId: string, from: string];

/** The health of a batch's endpoints as of each event. */
export interface Health {
  /** Log position of the event that is being applied. */
  position: string;
  readonly health: Map<string, HealthRow>;
  readonly changedHealth: Set<HealthRow>;
  readonly due: Map<string, Due>;
  /** Suspended and deleted partners, and since when. */
  readonly suspended: Map<string, string>;
  readonly changedPartners: Set<string>;
}

/** Events that suspend or resume the deliveries of a partner. Nothing resumes those of a deleted one. */
export const suspensionEvents = {
  'partners.PartnerSuspended.v1': partnerEvents['partners.PartnerSuspended.v1'],
  'partners.PartnerResumed.v1': partnerEvents['partners.PartnerResumed.v1'],
  'partners.PartnerDeleted.v1': partnerEvents['partners.PartnerDeleted.v1'],
} as const;
export type SuspensionEvent = EventOf<typeof suspensionEvents>;

/** Applies the suspension, resumption or deletion of a partner to all of its endpoints. */
export function foldSuspension(fold: Health, { type, data }: SuspensionEvent, position: bigint): void {
  fold.position = position.toString();
  switch (type) {
    case 'partners.PartnerSuspended.v1':
      suspend(fold, data.partner_id, data.suspended_at);
      return;
    case 'partners.PartnerDeleted.v1':
      suspend(fold, data.partner_id, data.deleted_at);
      return;
    case 'partners.PartnerResumed.v1':
      fold.suspended.delete(data.partner_id);
      setSuspension(fold, data.partner_id, null, data.resumed_at);
      return;
    default:
      unreachable(type);
  }
}

/** The first suspension counts. */
function suspend(fold: Health, partnerId: string, at: string): void {
  if (fold.suspended.has(partnerId)) return;
  fold.suspended.set(partnerId, at);
  setSuspension(fold, partnerId, at, at);
}

function setSuspension(
  fold: Health,
  partnerId: string,
  partner_suspended_at: string | null,
  at: string,
): void {
  fold.changedPartners.add(partnerId);
  for (const health of fold.health.values()) {
    if (health.partner_id === partnerId && health.deleted_at === null)
      changeHealth(fold, health, at, () => ({ partner_suspended_at }));
  }
}

/** Applies an event of an endpoint to its health. */
export function foldEndpoint(
  fold: Health & Recoveries,
  { type, data }: EndpointChangeEvent,
  position: bigint,
): void {
  fold.position = position.toString();
  const known = healthOf(fold, data);
  if (known.last_position !== null && BigInt(known.last_position) >= position) return;
  const last_position = fold.position;
  switch (type) {
    case 'webhooks.EndpointUpdated.v1':
      changeHealth(fold, data, data.updated_at, ({ paused_at }) => ({
        last_position,
        paused_at: data.enabled ? null : (paused_at ?? data.updated_at),
      }));
      return;
    case 'webhooks.EndpointDeleted.v1':
      changeHealth(fold, data, data.deleted_at, () => ({ last_position, deleted_at: data.deleted_at }));
      return;
    case 'webhooks.EndpointCreated.v1':
    case 'webhooks.SecretRotated.v1':
    case 'webhooks.SecretsResealed.v1':
      setHealth(fold, known, { last_position });
      return;
    case 'webhooks.RecoveryRequested.v1': {
      const { requested_at: created_at, ...row } = data;
      addRecovery(fold, { ...row, ...NO_COUNTS, created_at, position: last_position, completed_at: null });
      setHealth(fold, known, { last_position });
      return;
    }
    case 'webhooks.RecoveryCompleted.v1':
      completeRecovery(fold, data.recovery_id, data.completed_at);
      setHealth(fold, known, { last_position });
      return;
    default:
      unreachable(type);
  }
}

function setHealth(fold: Health, health: HealthRow, to: Partial<HealthRow>): void {
  Object.assign(health, to, { changed_position: fold.position });
  fold.changedHealth.add(health);
}

/** Applies a snapshot to an endpoint whose earlier events may have been truncated. */
export function foldSnapshot(
  fold: Health & Recoveries,
  partner_id: string,
  { webhook_id, enabled, updated_at, deleted_at, recovery }: SnapshottedEndpoint,
  position: bigint,
): void {
  fold.position = position.toString();
  const of = { webhook_id, partner_id };
  if (healthOf(fold, of).last_position !== null) return;
  changeHealth(fold, of, updated_at, () => ({
    last_position: position.toString(),
    paused_at: enabled || deleted_at !== null ? null : updated_at,
    deleted_at,
  }));
  if (recovery === null) return;
  const { requested_at: created_at, completed_at, ...row } = recovery;
  const fresh = { ...of, ...row, ...NO_COUNTS, created_at, completed_at, position: position.toString() };
  addRecovery(fold, fresh);
  // If deliveries of it precede the snapshot, they have made its row as of a recovery that has ended.
  completeRecovery(fold, row.recovery_id, completed_at);
}

/** Returns the endpoint's row, or a new one. */
export function healthOf(
  fold: Health,
  { webhook_id, partner_id }: { readonly webhook_id: string; readonly partner_id: string },
): HealthRow {
  const known = fold.health.get(webhook_id);
  if (known) return known;
  const suspended_at = fold.suspended.get(partner_id) ?? null;
  const fresh: HealthRow = {
    webhook_id,
    partner_id,
    pending: 0,
    failures_in_row: 0,
    last_attempt_at: null,
    last_error: null,
    last_http_status: null,
    paused_at: null,
    partner_suspended_at: suspended_at,
    deleted_at: null,
    still_since: suspended_at,
    still_ms: 0,
    fanned_out_to: null,
    last_position: null,
    changed_position: fold.position,
  };
  fold.health.set(webhook_id, fresh);
  return fresh;
}

/** Changes an endpoint's health at `at` (ISO 8601). Overlapping pauses, open breakers and suspensions of the partner count as one. */
export function changeHealth(
  fold: Health,
  of: { readonly webhook_id: string; readonly partner_id: string },
  at: string,
  to: (health: HealthRow) => Partial<HealthRow>,
): void {
  const health = healthOf(fold, of);
  const before = isSuspended(health);
  setHealth(fold, health, to(health));
  const after = isSuspended(health);
  if (!before && after) health.still_since = at;
  if (before && !after) {
    health.still_ms = suspendedMs(health, at);
    health.still_since = null;
    addDue(fold, health, '');
  }
}

/**
 * An endpoint is suspended while the partner has paused it, its breaker is open or its partner is suspended: only this pauses the
 * seven days.
 */
const isSuspended = ({ paused_at, partner_suspended_at, failures_in_row }: HealthRow): boolean =>
  paused_at !== null || partner_suspended_at !== null || failures_in_row >= BREAKER_OPENS_AFTER;

/** Returns the total suspension up to `at`, milliseconds; never negative, although clocks of processes differ. */
export const suspendedMs = ({ still_ms, still_since }: HealthRow, at: string): number =>
  still_ms + (still_since === null ? 0 : Math.max(0, Date.parse(at) - Date.parse(still_since)));

/** Schedules a notification of the endpoint from `from` on (ISO 8601; '' means now). */
export function addDue(
  fold: Health,
  { webhook_id, partner_id }: { readonly webhook_id: string; readonly partner_id: string },
  from: string,
): void {
  const known = fold.due.get(webhook_id)?.[2];
  if (known === undefined || from < known) fold.due.set(webhook_id, [webhook_id, partner_id, from]);
}
