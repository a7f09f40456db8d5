import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from '../log.ts';
import { reason } from './error.ts';

const POLL_MS = 250;
const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 15_000;

export interface Watched {
  isRunning(): boolean;
  /** Starts PostgreSQL again. @throws if it does not start */
  restart(): Promise<void>;
}

/**
 * Restarts PostgreSQL whenever it is gone, with a delay that doubles per failure. Polling, rather than waiting for the exit,
 * also works for an adopted process.
 * @returns the function that ends the supervision but not PostgreSQL
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
  while (await sleep(POLL_MS, ending)) {
    if (postgres.isRunning()) continue;
    log.warn('embedded PostgreSQL is gone; restarting it');
    try {
      await postgres.restart();
      delay = FIRST_DELAY_MS;
      log.warn('embedded PostgreSQL is running again');
    } catch (error) {
      log.error(`${reason(error)}; next try in ${delay / 1000} s`);
      if (!(await sleep(delay, ending))) return;
      delay = Math.min(delay * 2, MAX_DELAY_MS);
    }
  }
}

/** @returns false if it was aborted */
function sleep(milliseconds: number, ending: AbortSignal): Promise<boolean> {
  return pause(milliseconds, true, { signal: ending, ref: false }).catch(() => false);
}
