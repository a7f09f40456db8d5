import { readEvent } from '../../domain/kernel/events.ts';
import { mayBeTruncated, type OpenRound } from '../../domain/lookup/enrichment.ts';
import { enrichmentEvents } from '../../domain/lookup/events.ts';
import type { EventStore, Position } from '../../event-store/port.ts';

/**
 * Removes the events of an address before the restatement of its open round, or before the snapshot that its refresh began
 * with, so that an address that fails for months keeps a short stream. Does nothing unless all consumers have passed them: the
 * next restatement or snapshot covers more. `passed`: returns what all consumers have passed.
 * @throws StoreUnavailable
 */
export const truncateRestated = async (
  store: EventStore,
  stream: string,
  open: OpenRound,
  passed: () => Promise<Position | null>,
): Promise<void> => {
  if (!mayBeTruncated(open)) return;
  // The snapshot, the request, one event for each other reservation, and the failure.
  const limit = open.reservations.size + 3;
  for await (const stored of store.readStream(stream, { direction: 'backwards', limit })) {
    const event = readEvent(enrichmentEvents, stored);
    const isRestated = event?.type === 'lookup.EnrichmentRequested.v1' && event.data.restated === true;
    if (!isRestated && event?.type !== 'lookup.EnrichmentSnapshotted.v1') continue;
    const reached = await passed();
    if (reached !== null && stored.position <= reached) await store.truncateBefore(stream, stored.revision);
    return;
  }
};
