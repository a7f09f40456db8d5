import type pg from 'pg';
import type { Logger } from 'pino';
import { v7 as uuid } from 'uuid';
import type { LookupStreams } from '../../commands/lookup/aggregates.ts';
import type { EnrichmentSources } from '../../commands/lookup/generations.ts';
import { submitReservation } from '../../commands/lookup/submit-reservation.ts';
import { aheadAfter, isAhead } from '../../domain/kernel/ahead.ts';
import { type Clock, reportFutureTime } from '../../platform/clock/clock.ts';

export interface LeftReservationOptions extends LookupStreams, EnrichmentSources {
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Grace period in which the request itself may still complete its submission. */
const GRACE_MS = 5_000;
const MAX_RESERVATIONS_PER_RUN = 500;

/** The oldest first. `$1`: made until then, or after `$2`. */
const LEFT = `
  select reservation_id, partner_id, key_id, ip, made_at from read.reservation
  where state = 'reserved' and (made_at <= $1 or made_at > $2) order by made_at limit $3`;

/**
 * Submits reservations whose request stopped before its second step (architecture, rule 4). Concurrent runs and requests
 * are safe: a partner joins a round only once.
 */
export const submitLeftReservations = async (options: LeftReservationOptions): Promise<number> => {
  const { pool, clock, log } = options;
  const now = clock.now();
  const { rows } = await pool.query({
    name: 'left_reservations',
    text: LEFT,
    values: [new Date(now - GRACE_MS), new Date(aheadAfter(now)), MAX_RESERVATIONS_PER_RUN],
  });
  reportFutureTime('reservation', rows.filter(({ made_at }) => isAhead(made_at.getTime(), now)).length);
  for (const { ip, made_at, ...rest } of rows) {
    const id = uuid();
    const context = { correlationId: id, causationId: id, at: clock.now(), partnerId: rest.partner_id };
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
};
