import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from '../log.ts';
import { reason } from './error.ts';

const LOOK_EVERY_MS = 250;
const FIRST_DELAY_MS = 250;
const LONGEST_DELAY_MS = 15_000;

export interface Watched {
  isRunning(): boolean;
  /** Starts it again; throws if it would not. */
  restart(): Promise<void>;
}

/**
 * Looks after PostgreSQL: whenever it is gone it is started again, after a delay that doubles with each failure
 * in a row. Looking at the process rather than waiting for its exit works for an adopted one too.
 * @returns ends the supervision, without ending PostgreSQL
 */
export function supervise(postgres: Watched, log: Pick<Logger, 'warn' | 'error'>): () => void {
  const ending = new AbortController();
  void watch(postgres, log, ending.signal);
  return () => ending.abort();
}

async function watch(
  postgres: Watched,
  log: Pick<Logger, 'warn' | 'error'>,
  ending: AbortSignal,
): Promise<void> {
  let delay = FIRST_DELAY_MS;
  while (await sleep(LOOK_EVERY_MS, ending)) {
    if (postgres.isRunning()) continue;
    log.warn('the embedded PostgreSQL is gone: starting it again');
    try {
      await postgres.restart();
      delay = FIRST_DELAY_MS;
      log.warn('the embedded PostgreSQL runs again');
    } catch (error) {
      log.error(`${reason(error)}; next try in ${delay / 1000} s`);
      if (!(await sleep(delay, ending))) return;
      delay = Math.min(delay * 2, LONGEST_DELAY_MS);
    }
  }
}

/** @returns false when it was cut short */
function sleep(milliseconds: number, ending: AbortSignal): Promise<boolean> {
  return pause(milliseconds, true, { signal: ending, ref: false }).catch(() => false);
}
