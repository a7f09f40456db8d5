import type pg from 'pg';
import type { Logger } from 'pino';
import type { Clock } from '../../platform/clock.ts';
import { createWakeup } from '../../platform/wakeup.ts';
import { readWaiting } from './claims.ts';

/** How endpoints with pending deliveries are, over all processes. */
export interface Watched {
  /** By whether they take deliveries, are held by their breaker, or are paused. */
  readonly taking: number;
  readonly held: number;
  readonly paused: number;
  /** For how long the oldest delivery is due that nothing holds back, milliseconds. */
  readonly oldestDueMs: number;
}

export interface WatchOptions {
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly log: Logger;
  /** Something may be due at an endpoint from then on (milliseconds). */
  readonly look: (webhookId: string, partnerId: string, at: number) => void;
  readonly onWatched: (watched: Watched) => void;
}

/** The safety net under lost notifications, ended leases, and what waits for another projection. */
const EVERY_MS = 2_000;
/** The same while nothing is pending. */
const IDLE_MS = 10_000;

/** Finds out at which endpoints something is or comes due: told by the read model, and by looking now and then. */
export const startWatch = ({ pool, clock, log, look, onWatched }: WatchOptions) => {
  const stopping = new AbortController();
  const wakeup = createWakeup();

  /** @returns how long to wait before the next look, in milliseconds */
  const lookAround = async (): Promise<number> => {
    const now = clock.now();
    const waiting = await readWaiting(pool, now);
    let oldestDueMs = 0;
    for (const { webhook_id, partner_id, held, next_attempt_at } of waiting) {
      if (next_attempt_at === null) continue;
      look(webhook_id, partner_id, next_attempt_at.getTime());
      if (!held) oldestDueMs = Math.max(oldestDueMs, now - next_attempt_at.getTime());
    }
    const paused = waiting.filter((endpoint) => endpoint.paused).length;
    const held = waiting.filter((endpoint) => endpoint.held && !endpoint.paused).length;
    onWatched({ taking: waiting.length - paused - held, held, paused, oldestDueMs });
    return waiting.length > 0 ? EVERY_MS : IDLE_MS;
  };

  const loop = (async () => {
    while (!stopping.signal.aborted) {
      const waitMs = await lookAround().catch((error: unknown) => {
        log.warn({ error: String(error) }, 'due deliveries could not be read; they are read again');
        return EVERY_MS;
      });
      await wakeup.wait(waitMs, stopping.signal);
    }
  })();

  return {
    heard: (notification: string): void => {
      if (notification === '') {
        wakeup.wake();
        return;
      }
      for (const [webhookId, partnerId, from] of JSON.parse(notification) as [string, string, string][]) {
        look(webhookId, partnerId, from === '' ? clock.now() : Date.parse(from));
      }
    },
    stop: async (): Promise<void> => {
      stopping.abort();
      await loop;
    },
  };
};
