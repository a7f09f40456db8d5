import { ownContext } from '../../commands/handle.ts';
import type { QueueReservation, ReserveDelivery } from '../../commands/queue-reservation.ts';
import { completeRecovery, retryInRecovery } from '../../commands/webhooks/recover-deliveries.ts';
import { isoTime } from '../../domain/kernel/time.ts';
import type { Position } from '../../event-store/port.ts';
import { pause } from '../../platform/clock/waiting.ts';
import {
  listOpenRecoveries,
  type OpenRecovery,
  pagesOfRecoverable,
  type RecoverableDelivery,
  recordAllDue,
} from '../../projections/webhooks/deliveries/recovery-readers.ts';
import type { ProcessorDeps } from '../deps.ts';
import { forEachIsolated } from '../for-each.ts';

export interface RecoverDeliveriesOptions extends ProcessorDeps {
  /** Waits until the read model of deliveries reaches a position; false after a time limit. */
  readonly projected: (position: Position | null) => Promise<boolean>;
  readonly reserveQueue: ReserveDelivery;
  readonly signal: AbortSignal;
  /** Deliveries made due at a time. Default: 1,000. */
  readonly pageSize?: number;
}

const PAGE = 1_000;

/**
 * Makes due what open recoveries cover, page by page, in turn for each recovery. A page's events name each delivery's next
 * cycle, and the read model takes a delivery into a recovery once: after a crash at any point the next run goes on with what the
 * read model lacks. A later run completes a recovery of which no delivery is pending, or whose endpoint is paused or deleted.
 */
export async function recoverDeliveries(options: RecoverDeliveriesOptions): Promise<void> {
  const { store, pool, projected, signal } = options;
  if ((await listOpenRecoveries(pool)).length === 0) return;
  // Until the events of an interrupted run are projected, its deliveries still appear as waiting.
  if (!(await projected(await store.head()))) return;
  let running = (await listOpenRecoveries(pool)).map((recovery) => openRecovery(options, recovery));
  while (running.length > 0 && !signal.aborted) {
    const begun = performance.now();
    const goOn: typeof running = [];
    await forEachIsolated(running, async (recovery) => {
      if (await recovery.step()) goOn.push(recovery);
    });
    running = goOn;
    if (running.length === 0) return;
    // As many events in one transaction of the projection as one page of each recovery: more would hold up all others.
    if (!(await projected(await store.head()))) return;
    // Pauses as long as the pages took, as sweeps do.
    await pause(performance.now() - begun, signal);
  }
}

/** Opens a recovery. `step` makes its next page due, or completes it if it has ended, and returns whether there may be more to do. */
function openRecovery(options: RecoverDeliveriesOptions, recovery: OpenRecovery) {
  const { store, pool, clock, pageSize = PAGE } = options;
  const { webhook_id, partner_id, held_back, position, has_ended } = recovery;
  const known = {
    ...{ webhook_id, partner_id, recovery_id: recovery.recovery_id },
    since: isoTime(recovery.since.getTime()),
    requested_at: isoTime(recovery.created_at.getTime()),
  };
  const pages = pagesOfRecoverable(
    pool,
    {
      ...{ webhookId: webhook_id, since: known.since, heldBack: held_back, now: clock.now() },
      ...{ recoveryId: known.recovery_id, position },
    },
    pageSize,
  );
  async function step(): Promise<boolean> {
    const context = ownContext(clock, partner_id);
    if (has_ended) {
      await completeRecovery(store, known, context);
      return false;
    }
    const page = (await pages.next()).value;
    if (page === undefined) {
      await recordAllDue(pool, known.recovery_id);
      return false;
    }
    const { taken, reservations } = await withRoom(options, known, page);
    try {
      if (taken.length > 0) await retryInRecovery(store, known, taken, context);
    } catch (error) {
      for (const reservation of reservations) reservation.release();
      throw error;
    }
    // With a full queue, the next run goes on when there is room.
    return taken.length === page.length;
  }
  return { step };
}

/** Reserves room for the failed deliveries of a page; pending ones have it. `taken`: deliveries before the one that found no room. */
async function withRoom(
  { reserveQueue }: RecoverDeliveriesOptions,
  { partner_id, webhook_id }: Readonly<Record<'partner_id' | 'webhook_id', string>>,
  page: readonly RecoverableDelivery[],
): Promise<{ taken: readonly RecoverableDelivery[]; reservations: readonly QueueReservation[] }> {
  const reservations: QueueReservation[] = [];
  for (const [index, { state, event_id }] of page.entries()) {
    if (state === 'pending') continue;
    const reservation = await reserveQueue({ partner_id, webhook_id, event_id });
    if (reservation === null) return { taken: page.slice(0, index), reservations };
    reservations.push(reservation);
  }
  return { taken: page, reservations };
}
