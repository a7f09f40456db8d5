import type { Enrichment } from '../../domain/lookup/enrichment.ts';
import type { Reservation } from '../../domain/lookup/events.ts';
import type { Position } from '../../event-store/port.ts';
import type { CommandContext } from '../handle.ts';
import type { LookupStreams } from './aggregates.ts';
import { type EnrichmentSources, handleEnrichment, type KnownEnrichment } from './generations.ts';
import { settleReservations } from './settle-reservations.ts';

/** Adds a reservation to its enrichment stream, or settles it at once if no enrichment is needed any more. */
export const submitReservation = async (
  deps: LookupStreams & EnrichmentSources,
  ip: string,
  reservation: Reservation,
  context: CommandContext,
  known?: KnownEnrichment,
): Promise<{ state: Enrichment; position: Position | null }> => {
  const command = { type: 'Submit', ip, reservation, configured: deps.configured(), at: context.at } as const;
  const { state, position } = await handleEnrichment(deps, ip, command, context, known);
  const waits = state.open?.reservations.some((one) => one.partner_id === reservation.partner_id);
  if (!waits) await settleReservations(deps, [reservation], context);
  return { state, position };
};
