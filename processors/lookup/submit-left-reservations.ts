import type pg from 'pg';
import type { Logger } from 'pino';
import { v7 as uuid } from 'uuid';
import type { LookupStreams } from '../../commands/lookup/aggregates.ts';
import { submitReservation } from '../../commands/lookup/submit-lookup.ts';
import { aheadAfter, isAhead } from '../../domain/kernel/ahead.ts';
import { reportAhead } from '../../platform/ahead.ts';
import type { Clock } from '../../platform/clock.ts';

export interface LeftReservationOptions extends LookupStreams {
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A submission that is under way gets so long before the sweep does it instead. */
const GRACE_MS = 5_000;
const AT_ONCE = 500;

/**
 * Submits the reservations whose second step never happened (architecture, rule 4). Safe beside the POST
 * that is doing the same, and beside another sweep: a partner joins a round once.
 */
export const submitLeftReservations = async (options: LeftReservationOptions): Promise<number> => {
  const { pool, clock, log } = options;
  const now = clock.now();
  const { rows } = await pool.query(
    `select reservation_id, partner_id, key_id, ip, made_at from read.reservation
     where state = 'reserved' and (made_at <= $1 or made_at > $2) order by made_at limit ${AT_ONCE}`,
    [new Date(now - GRACE_MS), new Date(aheadAfter(now))],
  );
  reportAhead('reservation', rows.filter(({ made_at }) => isAhead(made_at.getTime(), now)).length);
  for (const { ip, made_at, ...rest } of rows) {
    const id = uuid();
    const context = { correlationId: id, causationId: id, at: clock.now(), partnerId: rest.partner_id };
    const reservation = { ...rest, submitted_at: made_at.toISOString() };
    await submitReservation(options, ip, reservation, context).catch(
      // The others behind it must not wait for one that cannot be submitted now.
      (error: unknown) =>
        log.warn({ reservation: rest.reservation_id, error: String(error) }, 'left once more'),
    );
  }
  if (rows.length > 0) log.info({ reservations: rows.length }, 'submitted reservations that were left');
  return rows.length;
};
