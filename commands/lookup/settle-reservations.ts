import { unreachable } from '../../domain/kernel/decider.ts';
import type { Reservation } from '../../domain/lookup/events.ts';
import { intakeStream } from '../../domain/lookup/intake.ts';
import type { CommandContext } from '../handle.ts';
import type { LookupStreams } from './aggregates.ts';

/** Releases finished reservations from their partners' pending limits. Idempotent. */
export const settleReservations = async (
  { intake }: Pick<LookupStreams, 'intake'>,
  reservations: readonly Reservation[],
  context: CommandContext,
): Promise<void> => {
  const byPartner = Map.groupBy(reservations, (reservation) => reservation.partner_id);
  await Promise.all(
    [...byPartner].map(async ([partner_id, own]) => {
      const reservation_ids = own.map((reservation) => reservation.reservation_id);
      const settled = await intake.submit(
        intakeStream(partner_id),
        { type: 'Settle', partner_id, reservation_ids, at: context.at },
        { ...context, partnerId: partner_id },
        () => null,
      );
      if (!settled.ok) unreachable(settled as never);
    }),
  );
};
