import type { Logger } from 'pino';
import { ownContext } from '../../commands/handle.ts';
import type { EnrichmentSources, LookupStreams } from '../../commands/lookup/enrichment-streams.ts';
import { snapshotIntakeOf } from '../../commands/lookup/snapshot-streams.ts';
import { settleReservations, submitReservation } from '../../commands/lookup/submit-lookup.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import { aheadAfter, DAY, isAhead } from '../../domain/kernel/time.ts';
import { ENRICHMENT_PREFIX, enrichmentEvents } from '../../domain/lookup/events.ts';
import { INTAKE_KEPT_DAYS, intakeStream } from '../../domain/lookup/intake.ts';
import { type Clock, reportFutureTime } from '../../platform/clock/clock.ts';
import { throttled } from '../../platform/clock/waiting.ts';
import type { ProcessorDeps } from '../deps.ts';
import type { FollowedStreams, FollowingProcessor } from '../follow.ts';
import { forEachIsolated } from '../for-each.ts';

export const SETTLING: FollowedStreams = {
  name: 'settle-ended-work',
  prefixes: [ENRICHMENT_PREFIX],
};

/** Releases the reservations of an ended enrichment from their partners' pending limits. */
export const settleEndedWork = (
  streams: Pick<LookupStreams, 'intake'>,
  clock: Clock,
): FollowingProcessor => ({
  ...SETTLING,
  async handle(stored) {
    const event = readEvent(enrichmentEvents, stored);
    if (event?.type !== 'lookup.EnrichmentCompleted.v1' && event?.type !== 'lookup.EnrichmentGaveUp.v1') {
      return;
    }
    await settleReservations(streams, event.data.settles, {
      correlationId: stored.metadata.$correlationId,
      causationId: stored.id,
      at: clock.now(),
    });
  },
});

interface OrphanedReservationOptions extends LookupStreams, EnrichmentSources, ProcessorDeps {
  readonly log: Logger;
}

/** Grace period in which the request itself may still complete its submission. */
const GRACE_MS = 5_000;
const MAX_RESERVATIONS_PER_RUN = 500;

/** The oldest first. `$1`: made until then, or after `$2`. */
const ORPHANED = `
  select reservation_id, partner_id, key_id, ip, made_at from read.reservation
  where state = 'reserved' and (made_at <= $1 or made_at > $2) order by made_at limit $3`;

/**
 * Submits reservations whose request stopped before its second step (architecture, rule 4). Concurrent runs and requests
 * are safe: a partner joins a round only once.
 */
export async function resubmitOrphaned(options: OrphanedReservationOptions): Promise<number> {
  const { pool, clock, log } = options;
  const now = clock.now();
  const { rows } = await pool.query({
    name: 'orphaned_reservations',
    text: ORPHANED,
    values: [new Date(now - GRACE_MS), new Date(aheadAfter(now)), MAX_RESERVATIONS_PER_RUN],
  });
  reportFutureTime('reservation', rows.filter(({ made_at }) => isAhead(made_at.getTime(), now)).length);
  for (const { ip, made_at, ...rest } of rows) {
    const context = ownContext(clock, rest.partner_id);
    const reservation = { ...rest, submitted_at: made_at.toISOString() };
    await submitReservation(options, ip, reservation, context).catch(
      // One reservation that cannot be submitted now must not block the ones behind it.
      (error: unknown) =>
        log.warn(
          { reservation: rest.reservation_id, error: String(error) },
          'reservation was not submitted; the next run retries',
        ),
    );
  }
  if (rows.length > 0)
    log.info({ reservations: rows.length }, 'submitted reservations left by interrupted requests');
  return rows.length;
}

/** Truncates each intake before its newest snapshot past the retention period, and appends today's snapshot. */
export async function truncateIntakes({ store, pool, clock }: ProcessorDeps): Promise<void> {
  const now = clock.now();
  const before = now - INTAKE_KEPT_DAYS * DAY;
  const { rows } = await pool.query<{ partner_id: string }>('select partner_id from read.partner');
  await forEachIsolated(rows, async ({ partner_id }) => {
    const stream = intakeStream(partner_id);
    let snapshot: number | null = null;
    for await (const event of throttled(store.readStream(stream))) {
      const at = Date.parse(event.metadata.at);
      // A timestamp from a fast clock says nothing about the event's age; the events after it do.
      if (isAhead(at, now)) continue;
      if (at >= before) break;
      if (event.type === 'lookup.IntakeSnapshotted.v1') snapshot = event.revision;
    }
    if (snapshot !== null) await store.truncateBefore(stream, snapshot);
    await snapshotIntakeOf(store, partner_id, ownContext(clock));
  });
}
