import { unreachable } from '../../domain/kernel/decider.ts';
import {
  BREAKER_OPENS_AFTER,
  type EndpointChangeEvent,
  type SnapshottedEndpoint,
} from '../../domain/webhooks/events.ts';

/** A row of `webhook_health`; positions as text. */
export interface HealthRow {
  readonly webhook_id: string;
  readonly partner_id: string;
  pending: number;
  failures_in_row: number;
  last_attempt_at: string | null;
  paused_at: string | null;
  deleted_at: string | null;
  /** Start of the current suspension; null: not suspended. */
  still_since: string | null;
  /** Total of ended suspensions, milliseconds. */
  still_ms: number;
  fanned_out_to: string | null;
  last_position: string | null;
}

/** Endpoint, partner, and the time from which something may be due (ISO 8601; '' means now). */
export type Due = readonly [webhookId: string, partnerId: string, from: string];

/** The health of a batch's endpoints as of each event. */
export interface Health {
  readonly health: Map<string, HealthRow>;
  readonly changedHealth: Set<HealthRow>;
  readonly due: Map<string, Due>;
}

/** Applies an event of an endpoint to its health. */
export const foldEndpoint = (fold: Health, { type, data }: EndpointChangeEvent, position: bigint): void => {
  const known = healthOf(fold, data);
  if (known.last_position !== null && BigInt(known.last_position) >= position) return;
  const last_position = position.toString();
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
      Object.assign(known, { last_position });
      fold.changedHealth.add(known);
      return;
    default:
      unreachable(type);
  }
};

/** Applies a snapshot to an endpoint whose earlier events may have been truncated. */
export const foldSnapshot = (
  fold: Health,
  partner_id: string,
  { webhook_id, enabled, updated_at, deleted_at }: SnapshottedEndpoint,
  position: bigint,
): void => {
  const of = { webhook_id, partner_id };
  if (healthOf(fold, of).last_position !== null) return;
  changeHealth(fold, of, updated_at, () => ({
    last_position: position.toString(),
    paused_at: enabled || deleted_at !== null ? null : updated_at,
    deleted_at,
  }));
};

/** Returns the endpoint's row, or a new one. */
export const healthOf = (
  fold: Health,
  { webhook_id, partner_id }: { readonly webhook_id: string; readonly partner_id: string },
): HealthRow => {
  const known = fold.health.get(webhook_id);
  if (known) return known;
  const fresh: HealthRow = {
    webhook_id,
    partner_id,
    pending: 0,
    failures_in_row: 0,
    last_attempt_at: null,
    paused_at: null,
    deleted_at: null,
    still_since: null,
    still_ms: 0,
    fanned_out_to: null,
    last_position: null,
  };
  fold.health.set(webhook_id, fresh);
  return fresh;
};

/** Changes an endpoint's health at `at` (ISO 8601). Overlapping pauses and open breakers count as one suspension. */
export const changeHealth = (
  fold: Health,
  of: { readonly webhook_id: string; readonly partner_id: string },
  at: string,
  to: (health: HealthRow) => Partial<HealthRow>,
): void => {
  const health = healthOf(fold, of);
  const before = isSuspended(health);
  Object.assign(health, to(health));
  const after = isSuspended(health);
  if (!before && after) health.still_since = at;
  if (before && !after) {
    health.still_ms = suspendedMs(health, at);
    health.still_since = null;
    addDue(fold, health, '');
  }
  fold.changedHealth.add(health);
};

/** An endpoint is suspended while the partner has paused it or its breaker is open: only this pauses the seven days. */
const isSuspended = ({ paused_at, failures_in_row }: HealthRow): boolean =>
  paused_at !== null || failures_in_row >= BREAKER_OPENS_AFTER;

/** Returns the total suspension up to `at`, milliseconds; never negative, although clocks of processes differ. */
export const suspendedMs = ({ still_ms, still_since }: HealthRow, at: string): number =>
  still_ms + (still_since === null ? 0 : Math.max(0, Date.parse(at) - Date.parse(still_since)));

/** Schedules a notification of the endpoint from `from` on (ISO 8601; '' means now). */
export const addDue = (
  fold: Health,
  { webhook_id, partner_id }: { readonly webhook_id: string; readonly partner_id: string },
  from: string,
): void => {
  const known = fold.due.get(webhook_id)?.[2];
  if (known === undefined || from < known) fold.due.set(webhook_id, [webhook_id, partner_id, from]);
};
