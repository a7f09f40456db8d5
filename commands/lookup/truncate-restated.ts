import { readEvent } from '../../domain/kernel/events.ts';
import { type OpenRound, wasJustRestated } from '../../domain/lookup/enrichment.ts';
import { enrichmentEvents } from '../../domain/lookup/events.ts';
import type { EventStore, Position } from '../../event-store/port.ts';

/**
 * Removes the events of an address before the restatement of its open round, so that an address that fails for months keeps a
 * short stream. Does nothing unless the newest failure was appended with a restatement and all consumers have passed it: a
 * later restatement covers more. `passed`: returns what all consumers have passed.
 * @throws StoreUnavailable
 */
export const truncateRestated = async (
  store: EventStore,
  stream: string,
  open: OpenRound,
  passed: () => Promise<Position | null>,
): Promise<void> => {
  if (!wasJustRestated(open)) return;
  // The request, one event for each other reservation, and the failure.
  const limit = open.reservations.size + 2;
  for await (const stored of store.readStream(stream, { direction: 'backwards', limit })) {
    const event = readEvent(enrichmentEvents, stored);
    if (event?.type !== 'lookup.EnrichmentRequested.v1') continue;
    const reached = await passed();
    if (event.data.restated && reached !== null && stored.position <= reached)
      await store.truncateBefore(stream, stored.revision);
    return;
  }
};
