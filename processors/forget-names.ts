import { DAY } from '../domain/kernel/time.ts';
import { ENRICHMENT_PREFIX, nextEnrichmentStream } from '../domain/lookup/events.ts';
import { EXPIRED_PREFIX, TAB_PREFIX } from '../domain/sessions/events.ts';
import { nextTabStream } from '../domain/sessions/tab.ts';
import { SIGNALS_PREFIX } from '../domain/signals/events.ts';
import { USAGE_PREFIX } from '../domain/usage/events.ts';
import { DELIVERIES_PREFIX, PAYLOAD_PREFIX } from '../domain/webhooks/events.ts';
import type { EventStore } from '../event-store/port.ts';
import type { Clock } from '../platform/clock/clock.ts';

/** Longer than any resend, retry or cached state can refer to a deleted stream. */
const NAMES_KEPT_DAYS = 30;

/**
 * Prefixes of stream names that are never used again: made of a day, a generation or a unique id. A reveal's stream name
 * derives from an Idempotency-Key that a partner may resend, so it stays for ever and no reveal is billed twice.
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

/** Returns the next generation's stream: while the store knows it, earlier generations must still lead to it. */
const successorOf = (stream: string): string | null =>
  stream.startsWith(TAB_PREFIX)
    ? nextTabStream(stream)
    : stream.startsWith(ENRICHMENT_PREFIX)
      ? nextEnrichmentStream(stream)
      : null;

/** Forgets the names of streams that were deleted 30 days ago. */
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
