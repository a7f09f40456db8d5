import { StoreBusy, WrongExpectedRevision } from '../event-store/port.ts';
import { backoffMs } from '../platform/backoff.ts';
import { pause } from '../platform/pause.ts';

/** Conflicts in a row, and the milliseconds, that a command is retried for. Both must be used up. */
const CONFLICTS = 12;
const PATIENCE_MS = 2_000;
const DELAY = { firstMs: 4, mostMs: 64 } as const;

/**
 * Makes what one command awaits after a refused append, before it reads the stream again. A refusal may be due to a
 * revision that no reader sees yet: a leader of a cluster refuses on events that are not replicated.
 * @returns a function that pauses after WrongExpectedRevision, each time for longer, and throws any other error.
 * @throws StoreBusy when the conflicts go on for too long: nothing was written
 */
export const conflictRetries = (): ((error: unknown) => Promise<void>) => {
  const began = performance.now();
  let conflicts = 0;
  return async (error) => {
    if (!(error instanceof WrongExpectedRevision)) throw error;
    conflicts += 1;
    if (conflicts >= CONFLICTS && performance.now() - began >= PATIENCE_MS) {
      throw new StoreBusy(`refused ${conflicts} times in a row: ${error.message}`, { cause: error });
    }
    await pause(backoffMs(conflicts, DELAY));
  };
};
