/** The health of endpoints in the read model `deliveries`: its row, and how events of endpoints, partners and attempts change it. */
import { unreachable } from '../../../domain/kernel/decider.ts';
import type { EventOf } from '../../../domain/kernel/events.ts';
import { partnerEvents } from '../../../domain/partners/events.ts';
import {
  BREAKER_OPENS_AFTER,
  type DeliveryError,
  type EndpointChangeEvent,
  NO_DELIVERIES,
  type SnapshottedEndpoint,
} from '../../../domain/webhooks/events.ts';
import type { Columns } from '../../tables.ts';
import { addRecovery, completeRecovery, type Recoveries } from './recovery.ts';

/** A row of `webhook_health`; instants in ISO 8601. */
export interface HealthRow {
  readonly webhook_id: string;
  readonly partner_id: string;
  pending: number;
  failures_in_row: number;
  last_attempt_at: string | null;
  /** Why the last attempt failed; null: it succeeded, or there was none. */
  last_error: DeliveryError | null;
  last_http_status: number | null;
  paused_at: string | null;
  /** Since when the partner is suspended or deleted. */
  partner_suspended_at: string | null;
  deleted_at: string | null;
  /** Start of the current suspension, whatever its reason (`isSuspended`); null: not suspended. */
  suspended_since: string | null;
  /** Total of ended suspensions, milliseconds. */
  suspended_ms: number;
  /** Log position of the newest event that a delivery of the endpoint was queued for; null: none but tests. */
  fanned_out_to: string | null;
  /** Log position of the last event of the endpoint itself; null: none was applied, only events of its deliveries. */
  last_position: string | null;
  /** Log position of the last event of the endpoint or of one of its deliveries. */
  changed_position: string;
}

type EndpointRef = Pick<HealthRow, 'webhook_id' | 'partner_id'>;

export const HEALTH_COLUMNS: Columns<HealthRow> = {
  webhook_id: 'uuid',
  partner_id: 'uuid',
  pending: 'bigint',
  failures_in_row: 'integer',
  last_attempt_at: 'timestamptz',
  last_error: 'text',
  last_http_status: 'integer',
  paused_at: 'timestamptz',
  partner_suspended_at: 'timestamptz',
  deleted_at: 'timestamptz',
  suspended_since: ['timestamptz', 'still_since'],
  suspended_ms: ['bigint', 'still_ms'],
  fanned_out_to: 'position',
  last_position: 'position',
  changed_position: 'position',
};

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
      addRecovery(fold, {
        ...row,
        ...NO_DELIVERIES,
        created_at,
        position: last_position,
        completed_at: null,
      });
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
    last_position: fold.position,
    paused_at: enabled || deleted_at !== null ? null : updated_at,
    deleted_at,
  }));
  if (recovery === null) return;
  const { requested_at: created_at, completed_at, ...row } = recovery;
  const fresh = { ...of, ...row, ...NO_DELIVERIES, created_at, completed_at, position: fold.position };
  addRecovery(fold, fresh);
  // If deliveries of it precede the snapshot, they have made its row as of a recovery that has ended.
  completeRecovery(fold, row.recovery_id, completed_at);
}

/** Returns the endpoint's row, or a new one. */
export function healthOf(fold: Health, { webhook_id, partner_id }: EndpointRef): HealthRow {
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
    suspended_since: suspended_at,
    suspended_ms: 0,
    fanned_out_to: null,
    last_position: null,
    changed_position: fold.position,
  };
  fold.health.set(webhook_id, fresh);
  return fresh;
}

export function setHealth(fold: Health, health: HealthRow, to: Partial<HealthRow>): void {
  Object.assign(health, to, { changed_position: fold.position });
  fold.changedHealth.add(health);
}

/** Changes an endpoint's health at `at` (ISO 8601). Overlapping pauses, open breakers and suspensions of the partner count as one. */
export function changeHealth(
  fold: Health,
  of: EndpointRef,
  at: string,
  to: (health: HealthRow) => Partial<HealthRow>,
): void {
  const health = healthOf(fold, of);
  const before = isSuspended(health);
  setHealth(fold, health, to(health));
  const after = isSuspended(health);
  if (!before && after) health.suspended_since = at;
  if (before && !after) {
    health.suspended_ms = suspendedMs(health, at);
    health.suspended_since = null;
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
export const suspendedMs = ({ suspended_ms, suspended_since }: HealthRow, at: string): number =>
  suspended_ms + (suspended_since === null ? 0 : Math.max(0, Date.parse(at) - Date.parse(suspended_since)));

/** Schedules a notification of the endpoint from `from` on (ISO 8601; '' means now). */
export function addDue(fold: Health, { webhook_id, partner_id }: EndpointRef, from: string): void {
  const known = fold.due.get(webhook_id)?.[2];
  if (known === undefined || from < known) fold.due.set(webhook_id, [webhook_id, partner_id, from]);
}
