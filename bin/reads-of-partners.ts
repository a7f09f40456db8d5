import type { ReadForPartner } from '../commands/read-for-partner.ts';
import { StoreBusy } from '../event-store/port.ts';
import { createSemaphores } from '../platform/semaphore.ts';

/** A third of what the client of EventStoreDB reads at a time. */
const READS_AT_ONCE = 8;
/** Less than a request's time limit, so that nothing is read for an answer that has gone. */
const PATIENCE_MS = 4_000;

/** Limits each partner's reads of streams, because those of all partners wait for each other in the store's client. */
export const createReadsOfPartners = (): ReadForPartner =>
  createSemaphores({
    limit: READS_AT_ONCE,
    maxWaitMs: PATIENCE_MS,
    refusal: (why) => new StoreBusy(why),
  }).enter;
