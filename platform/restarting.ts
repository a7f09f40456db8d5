import type { Logger } from './log.ts';
import { pause } from './pause.ts';

const RESTART_MS = 500;

/** Runs a part of the service until the signal aborts, and again after a failure, which it logs. */
export const restarting = async (
  what: string,
  log: Logger,
  signal: AbortSignal,
  run: () => Promise<void>,
): Promise<void> => {
  while (!signal.aborted) {
    try {
      await run();
    } catch (error) {
      if (!signal.aborted)
        log.warn({ part: what, error: String(error) }, 'part of a group failed; restart scheduled');
    }
    await pause(RESTART_MS, signal);
  }
};
