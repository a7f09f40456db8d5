import { billReveals, type RevealToBill } from '../../commands/billing/bill-reveals.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import { REVEAL_PREFIX, revealEvents } from '../../domain/reveals/events.ts';
import type { EventStore, RecordedEvent } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { type FollowedStreams, type FollowingProcessor, traceOf } from '../follow.ts';

export const BILLING: FollowedStreams = {
  name: 'bill-completed-reveals',
  prefixes: [REVEAL_PREFIX],
};

/** Bills every completed reveal to its partner's ledger, including reveals that expired while this processor lagged. */
export function billCompletedReveals(store: EventStore, clock: Clock): FollowingProcessor {
  const handleAll = async (events: readonly RecordedEvent[]): Promise<void> => {
    const completions = events.flatMap((stored) => completionOf(stored, clock.now()));
    const partner = completions[0]?.reveal.partner_id;
    if (partner !== undefined) await billReveals(store, partner, completions);
  };
  return {
    ...BILLING,
    includeExpired: true,
    // The ledger ignores positions at or before its last one, so a partner's completions must stay in order.
    lane: ({ data }) => String((data as { partner_id?: unknown } | null)?.partner_id),
    handle: (event) => handleAll([event]),
    handleAll,
  };
}

function completionOf(stored: RecordedEvent, at: number): RevealToBill[] {
  const event = readEvent(revealEvents, stored);
  if (event?.type !== 'reveals.RevealCompleted.v1') return [];
  const { partner_id, reveal_id, tracker_id, key_id, user_id, completed_at, billable } = event.data;
  return [
    {
      reveal: {
        partner_id,
        reveal_id,
        tracker_id,
        key_id,
        user_id,
        completed_at,
        billable,
        position: stored.position,
      },
      context: {
        correlationId: stored.metadata.$correlationId,
        causationId: stored.id,
        ...traceOf(stored),
        at,
        partnerId: partner_id,
        ...(key_id === null ? {} : { keyId: key_id }),
      },
    },
  ];
}
