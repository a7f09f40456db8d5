import type pg from 'pg';
import type { Logger } from 'pino';
import { z } from 'zod';
import { aheadAfter } from '../../../domain/kernel/time.ts';
import { BREAKER_OPENS_AFTER } from '../../../domain/webhooks/events.ts';
import type { Clock } from '../../../platform/clock/clock.ts';
import { createWakeup } from '../../../platform/clock/waiting.ts';

/** State of the endpoints with pending deliveries, over all processes. */
export interface Watched {
  /** Endpoints that accept deliveries, whose breaker is open, and that are paused or whose partner is suspended. */
  readonly accepting: number;
  readonly breakerOpen: number;
  readonly paused: number;
  /** Age of the oldest due delivery of an endpoint whose breaker is closed, milliseconds. */
  readonly oldestDueMs: number;
}

export interface DueEndpointsOptions {
  readonly pool: pg.Pool;
  readonly clock: Clock;
  readonly log: Logger;
  /** Schedules a poll of the endpoint at a time (milliseconds). */
  readonly schedule: (webhookId: string, partnerId: string, at: number) => void;
  readonly onWatched: (watched: Watched) => void;
}

/** Catches lost notifications, expired leases and deliveries that wait for another projection. */
const POLL_MS = 5_000;

/** Endpoint, partner, and the time of its next attempt (ISO 8601; '': now). */
const notificationSchema = z.array(z.tuple([z.guid(), z.guid(), z.union([z.literal(''), z.iso.datetime()])]));

/** Schedules endpoints with due deliveries, by notifications of the read model and by polling. */
export function findDueEndpoints({ pool, clock, log, schedule, onWatched }: DueEndpointsOptions) {
  const stopping = new AbortController();
  const wakeup = createWakeup();
  const loop = pollUntilStopped();

  async function pollUntilStopped(): Promise<void> {
    while (!stopping.signal.aborted) {
      await poll().catch((error: unknown) =>
        log.warn({ error: String(error) }, 'due deliveries could not be read; retry scheduled'),
      );
      await wakeup.wait(POLL_MS, stopping.signal);
    }
  }

  async function poll(): Promise<void> {
    const now = clock.now();
    const waiting = await readWaiting(pool, now);
    let oldestDueMs = 0;
    for (const { webhook_id, partner_id, breaker_open, next_attempt_at } of waiting) {
      if (next_attempt_at === null) continue;
      schedule(webhook_id, partner_id, next_attempt_at.getTime());
      if (!breaker_open) oldestDueMs = Math.max(oldestDueMs, now - next_attempt_at.getTime());
    }
    const paused = waiting.filter((endpoint) => endpoint.paused).length;
    const breakerOpen = waiting.filter((endpoint) => endpoint.breaker_open && !endpoint.paused).length;
    onWatched({ accepting: waiting.length - paused - breakerOpen, breakerOpen, paused, oldestDueMs });
  }

  return {
    /** Schedules the endpoints that a notification of the read model names; any other notification polls. */
    onNotification: (notification: string): void => {
      const due = endpointsIn(notification);
      if (due === null) wakeup.wake();
      for (const [webhookId, partnerId, from] of due ?? [])
        schedule(webhookId, partnerId, from === '' ? clock.now() : Date.parse(from));
    },
    stop: async (): Promise<void> => {
      stopping.abort();
      await loop;
    },
  };
}

/** Returns the endpoints that a notification names; null: it names none, or is of another version. */
function endpointsIn(notification: string): z.output<typeof notificationSchema> | null {
  try {
    return notificationSchema.parse(JSON.parse(notification));
  } catch {
    return null;
  }
}

/** An endpoint with pending deliveries. */
interface WaitingEndpoint {
  readonly webhook_id: string;
  readonly partner_id: string;
  readonly paused: boolean;
  readonly breaker_open: boolean;
  /** Next attempt of its earliest pending delivery; null: the endpoint is paused, or its partner suspended. */
  readonly next_attempt_at: Date | null;
}

/**
 * Loads all endpoints with pending deliveries, of every worker. `now` in milliseconds. Sorted, so that the search for a
 * delivery that a fast clock recorded uses its index instead of reading all deliveries that wait for a retry.
 */
async function readWaiting(pool: pg.Pool, now: number): Promise<WaitingEndpoint[]> {
  const { rows } = await pool.query<WaitingEndpoint>({
    name: 'waiting_endpoints',
    text: `select h.webhook_id, h.partner_id, coalesce(h.paused_at, h.partner_suspended_at) is not null as paused, h.failures_in_row >= $1 as breaker_open,
                  case when a.next_attempt_at is null then n.next_attempt_at else $2 end as next_attempt_at
           from read.webhook_health h
           left join lateral (
             select d.next_attempt_at from read.webhook_delivery d
             where d.webhook_id = h.webhook_id and d.state = 'pending' and coalesce(h.paused_at, h.partner_suspended_at) is null
             order by d.next_attempt_at limit 1) n on true
           left join lateral (
             select d.next_attempt_at from read.webhook_delivery d
             where d.webhook_id = h.webhook_id and d.state = 'pending' and coalesce(h.paused_at, h.partner_suspended_at) is null
               and case when d.cycle_attempts = 0 then d.cycle_started_at else d.last_attempt_at end > $3
             order by case when d.cycle_attempts = 0 then d.cycle_started_at else d.last_attempt_at end desc
             limit 1) a on n.next_attempt_at > $2
           where h.pending > 0 and h.deleted_at is null`,
    values: [BREAKER_OPENS_AFTER, new Date(now), new Date(aheadAfter(now))],
  });
  return rows;
}
