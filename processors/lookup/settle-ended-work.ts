import type { LookupStreams } from '../../commands/lookup/aggregates.ts';
import { settleReservations } from '../../commands/lookup/settle-reservations.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import { ENRICHMENT_PREFIX, enrichmentEvents } from '../../domain/lookup/events.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import type { FollowedStreams, FollowingProcessor } from '../follow.ts';

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
