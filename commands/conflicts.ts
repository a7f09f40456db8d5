import { StoreBusy, WrongExpectedRevision } from '../event-store/port.ts';
import { backoffMs, pause } from '../platform/clock/waiting.ts';

/** A command is retried until both the number of conflicts in a row and the time are used up. */
const MAX_CONFLICTS = 12;
const MAX_RETRY_MS = 2_000;
const DELAY = { firstMs: 4, mostMs: 64 } as const;

/**
 * Creates the wait of one command between a conflict and the next read. The conflict may come from a revision that no
 * reader sees yet: a cluster's leader rejects on events that are not replicated.
 * @returns a function that pauses after WrongExpectedRevision, each time for longer, and throws any other error.
 * @throws StoreBusy when the conflicts go on for too long: nothing was written
 */
export const conflictRetries = (): ((error: unknown) => Promise<void>) => {
  const began = performance.now();
  let conflicts = 0;
  return async (error) => {
    if (!(error instanceof WrongExpectedRevision)) throw error;
    conflicts += 1;
    if (conflicts >= MAX_CONFLICTS && performance.now() - began >= MAX_RETRY_MS) {
      throw new StoreBusy(`refused ${conflicts} times in a row: ${error.message}`, { cause: error });
    }
    await pause(backoffMs(conflicts, DELAY));
  };
};
