/** Recoveries in the read model `deliveries`: their row, and how events change it. */
import {
  type DeliveryEvent,
  type DeliveryState,
  NO_DELIVERIES,
  totalOf,
} from '../../../domain/webhooks/events.ts';
import type { Columns } from '../../tables.ts';

/** A row of `webhook_recovery`, with the number of its deliveries in each state; instants in ISO 8601. */
export interface RecoveryRow extends Record<DeliveryState, number> {
  readonly recovery_id: string;
  readonly webhook_id: string;
  readonly partner_id: string;
  readonly since: string;
  readonly held_back: boolean;
  /** Number of deliveries, as counted at the request. */
  readonly deliveries: number;
  readonly created_at: string;
  /** Log position of the request. */
  readonly position: string;
  completed_at: string | null;
}

export const RECOVERY_COLUMNS: Columns<RecoveryRow> = {
  recovery_id: 'uuid',
  webhook_id: 'uuid',
  partner_id: 'uuid',
  since: 'timestamptz',
  held_back: 'boolean',
  deliveries: 'bigint',
  created_at: 'timestamptz',
  position: 'position',
  completed_at: 'timestamptz',
  pending: 'bigint',
  delivered: 'bigint',
  failed: 'bigint',
  cancelled: 'bigint',
  expired: 'bigint',
};

/** The recoveries that a batch may change. */
export interface Recoveries {
  readonly recoveries: Map<string, RecoveryRow>;
  readonly changedRecoveries: Set<RecoveryRow>;
}

export function addRecovery(fold: Recoveries, row: RecoveryRow): void {
  if (fold.recoveries.has(row.recovery_id)) return;
  fold.recoveries.set(row.recovery_id, row);
  fold.changedRecoveries.add(row);
}

/** Adds a recovery by the event of its deliveries: in a rebuild, its request may have been truncated behind a snapshot. */
export function addTruncatedRecovery(
  fold: Recoveries,
  data: Extract<DeliveryEvent, { type: 'webhooks.DeliveriesRetried.v1' }>['data'],
  position: string,
): void {
  const { recovery_id, webhook_id, partner_id, since, requested_at: created_at, retried_at } = data;
  const known = { recovery_id, webhook_id, partner_id, since, created_at, position };
  addRecovery(fold, {
    ...known,
    ...NO_DELIVERIES,
    held_back: false,
    deliveries: 0,
    completed_at: retried_at,
  });
}

export function countInRecovery(
  fold: Recoveries,
  recoveryId: string | null,
  state: DeliveryState,
  more: 1 | -1,
): void {
  const recovery = recoveryId === null ? undefined : fold.recoveries.get(recoveryId);
  if (!recovery) return;
  recovery[state] += more;
  fold.changedRecoveries.add(recovery);
}

/**
 * Returns the open recovery that has counted a delivery at its request and has not made it due yet: when the delivery arrives before
 * its turn, by a probe for example, it stays in the count. null: there is none.
 */
export function countedBy(
  { recoveries }: Recoveries,
  {
    webhook_id,
    created_at,
    cycle_attempts,
  }: Readonly<Record<'webhook_id' | 'created_at', string>> & { readonly cycle_attempts: number },
): string | null {
  for (const recovery of recoveries.values()) {
    const { recovery_id, since, held_back, deliveries, completed_at } = recovery;
    if (recovery.webhook_id !== webhook_id || completed_at !== null) continue;
    const isCounted =
      created_at >= since && created_at <= recovery.created_at && (held_back || cycle_attempts > 0);
    if (isCounted && totalOf(recovery) < deliveries) return recovery_id;
  }
  return null;
}

export function completeRecovery(fold: Recoveries, recoveryId: string, completedAt: string | null): void {
  const recovery = fold.recoveries.get(recoveryId);
  if (!recovery) return;
  recovery.completed_at = completedAt;
  fold.changedRecoveries.add(recovery);
}

/** Takes a pending delivery out of its recovery, which counts it as cancelled, because a later recovery retries it. */
export function leaveRecovery(fold: Recoveries, recoveryId: string | null): void {
  countInRecovery(fold, recoveryId, 'pending', -1);
  countInRecovery(fold, recoveryId, 'cancelled', 1);
}
