import type pg from 'pg';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { Clock } from '../../platform/clock.ts';
import { createWakeup } from '../../platform/wakeup.ts';
import { readWaiting } from './claims.ts';
import { createOwnedEndpoints } from './endpoint-owners.ts';

/** State of the endpoints with pending deliveries, over all processes. */
export interface Watched {
  /** Endpoints that accept deliveries, whose breaker is open, and that are paused. */
  readonly accepting: number;
  readonly breakerOpen: number;
  readonly paused: number;
  /** Age of the oldest due delivery of an endpoint whose breaker is closed, milliseconds. */
  readonly oldestDueMs: number;
}

export interface WatchOptions {
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly log: Logger;
  /** Schedules a poll of the endpoint at a time (milliseconds). */
  readonly schedule: (webhookId: string, partnerId: string, at: number) => void;
  readonly onWatched: (watched: Watched) => void;
}

/** Catches lost notifications, expired leases and deliveries that wait for another projection. */
const EVERY_MS = 2_000;
/** While nothing is pending. */
const IDLE_MS = 4_000;
/**
 * Endpoints that notifications may name in `EVERY_MS`; then one poll finds the due ones. Any database user may name thousands
 * that do not exist, and each takes its turn before an endpoint that does.
 */
export const MAX_NOTIFIED_ENDPOINTS = 1_000;

/**
 * Endpoint, partner (for earlier versions), and the time of its next attempt (ISO 8601; '': now). Checked, because any database user may notify: an
 * id that is no UUID would fail every query for due deliveries.
 */
const dueSchema = z.tuple([z.guid(), z.guid(), z.union([z.literal(''), z.iso.datetime()])]);

/** Up to the first fault: a schema of the list would describe all of 4,000, which takes 4 ms. */
const dueIn = (notification: string): z.output<typeof dueSchema>[] | null => {
  try {
    const entries = z.array(z.unknown()).parse(JSON.parse(notification));
    return entries.map((entry) => dueSchema.parse(entry));
  } catch {
    return null;
  }
};

/** Bounds the distinct endpoints that are scheduled without a poll. @returns whether this one may be */
const createNotifiedEndpoints = () => {
  let [since, named] = [Number.NEGATIVE_INFINITY, new Set<string>()];
  return {
    admit: (webhookId: string): boolean => {
      if (performance.now() - since >= EVERY_MS) [since, named] = [performance.now(), new Set()];
      if (named.size < MAX_NOTIFIED_ENDPOINTS) named.add(webhookId);
      return named.has(webhookId);
    },
  };
};

export type Watch = ReturnType<typeof startWatch>;

/** Schedules endpoints with due deliveries, by notifications of the read model and by polling. */
export const startWatch = ({ pool, clock, log, schedule, onWatched }: WatchOptions) => {
  const stopping = new AbortController();
  const wakeup = createWakeup();
  const notified = createNotifiedEndpoints();
  let polledForOthersAt = Number.NEGATIVE_INFINITY;
  const polledForOthers = (withinMs: number): boolean => performance.now() - polledForOthersAt < withinMs;
  const pollForOthers = (): void => {
    if (polledForOthers(EVERY_MS)) return;
    polledForOthersAt = performance.now();
    wakeup.wake();
  };

  const owned = createOwnedEndpoints({ pool, schedule, onFailure: pollForOthers });

  const poll = async (): Promise<number> => {
    const now = clock.now();
    const waiting = await readWaiting(pool, now);
    let oldestDueMs = 0;
    for (const { webhook_id, partner_id, breaker_open, next_attempt_at } of waiting) {
      owned.note(webhook_id, partner_id);
      if (next_attempt_at === null) continue;
      schedule(webhook_id, partner_id, next_attempt_at.getTime());
      if (!breaker_open) oldestDueMs = Math.max(oldestDueMs, now - next_attempt_at.getTime());
    }
    const paused = waiting.filter((endpoint) => endpoint.paused).length;
    const breakerOpen = waiting.filter((endpoint) => endpoint.breaker_open && !endpoint.paused).length;
    onWatched({ accepting: waiting.length - paused - breakerOpen, breakerOpen, paused, oldestDueMs });
    return waiting.length > 0 || polledForOthers(IDLE_MS) ? EVERY_MS : IDLE_MS;
  };

  const loop = (async () => {
    while (!stopping.signal.aborted) {
      const waitMs = await poll().catch((error: unknown) => {
        log.warn({ error: String(error) }, 'due deliveries could not be read; retry scheduled');
        return EVERY_MS;
      });
      await wakeup.wait(waitMs, stopping.signal);
    }
  })();

  return {
    onNotification: (notification: string): void => {
      const due = notification === '' ? null : dueIn(notification);
      if (due === null) {
        wakeup.wake();
        return;
      }
      for (const [webhookId, , from] of due) {
        if (notified.admit(webhookId))
          owned.schedule(webhookId, from === '' ? clock.now() : Date.parse(from));
        else pollForOthers();
      }
    },
    stop: async (): Promise<void> => {
      stopping.abort();
      await loop;
    },
  };
};
