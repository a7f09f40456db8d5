import { DAY } from '../domain/kernel/time.ts';
import { ENRICHMENT_PREFIX, nextEnrichmentStream } from '../domain/lookup/events.ts';
import { EXPIRED_PREFIX, TAB_PREFIX } from '../domain/sessions/events.ts';
import { nextTabStream } from '../domain/sessions/tab.ts';
import { SIGNALS_PREFIX } from '../domain/signals/events.ts';
import { USAGE_PREFIX } from '../domain/usage/events.ts';
import { DELIVERIES_PREFIX, PAYLOAD_PREFIX } from '../domain/webhooks/events.ts';
import type { EventStore } from '../event-store/port.ts';
import type { Clock } from '../platform/clock.ts';

/** Long after any resend, retry or cached state of a deleted stream. */
const NAMES_KEPT_DAYS = 30;

/**
 * Streams whose names are made of a day, or of an id that is made once, or that have generations. The name of a reveal is
 * made of an Idempotency-Key, which a partner may send again: it is kept for ever, so that no reveal is billed twice.
 */
const FORGOTTEN = [
  TAB_PREFIX,
  ENRICHMENT_PREFIX,
  PAYLOAD_PREFIX,
  DELIVERIES_PREFIX,
  USAGE_PREFIX,
  SIGNALS_PREFIX,
  EXPIRED_PREFIX,
];

/** The next generation: while the store knows of it, the earlier ones lead to it. */
const successorOf = (stream: string): string | null =>
  stream.startsWith(TAB_PREFIX)
    ? nextTabStream(stream)
    : stream.startsWith(ENRICHMENT_PREFIX)
      ? nextEnrichmentStream(stream)
      : null;

/** Lets the store forget the names of streams that were deleted long ago. */
export const forgetNames = async ({
  store,
  clock,
}: {
  readonly store: EventStore;
  readonly clock: Clock;
}): Promise<void> => {
  const before = clock.now() - NAMES_KEPT_DAYS * DAY;
  await store.forgetNames({ prefixes: FORGOTTEN, before, successorOf });
};
