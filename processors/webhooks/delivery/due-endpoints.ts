import type pg from 'pg';
import type { Logger } from 'pino';
import { z } from 'zod';
import { aheadAfter } from '../../../domain/kernel/time.ts';
import type { Clock } from '../../../platform/clock/clock.ts';
import { createWakeup } from '../../../platform/clock/waiting.ts';
import { ENDPOINT_STATE, type IntakeState } from '../../../projections/webhooks/deliveries/health-readers.ts';

/** Numbers of endpoints with pending deliveries, over all processes. */
export interface Watched {
  readonly accepting: number;
  readonly breakerOpen: number;
  /** Paused by the partner, or of a suspended partner. */
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
    for (const { webhook_id, partner_id, state, next_attempt_at } of waiting) {
      if (next_attempt_at === null) continue;
      schedule(webhook_id, partner_id, next_attempt_at.getTime());
      if (state === 'open') oldestDueMs = Math.max(oldestDueMs, now - next_attempt_at.getTime());
    }
    const accepting = waiting.filter(({ state }) => state === 'open').length;
    const breakerOpen = waiting.filter(({ state }) => state === 'held_back').length;
    onWatched({ accepting, breakerOpen, paused: waiting.length - accepting - breakerOpen, oldestDueMs });
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
  readonly state: Exclude<IntakeState, 'deleted'>;
  /** Next attempt of its earliest delivery that can still be sent; null: none, or the endpoint takes none now. */
  readonly next_attempt_at: Date | null;
}

/**
 * Loads all endpoints with pending deliveries, of every worker. `now` in milliseconds. Sorted, so that the search for a
 * delivery that a fast clock recorded uses its index instead of reading all deliveries that wait for a retry.
 */
async function readWaiting(pool: pg.Pool, now: number): Promise<WaitingEndpoint[]> {
  const { rows } = await pool.query<WaitingEndpoint>({
    name: 'waiting_endpoints',
    text: `select h.webhook_id, h.partner_id, h.state,
                  case when a.next_attempt_at is null then n.next_attempt_at else $1 end as next_attempt_at
           from (select h.webhook_id, h.partner_id, ${ENDPOINT_STATE} as state from read.webhook_health h
                 where h.pending > 0 and h.deleted_at is null) h
           left join lateral (
             select d.next_attempt_at from read.webhook_delivery d
             where d.webhook_id = h.webhook_id and work.can_be_sent(d.state, d.payload_expires_at, $1)
             order by d.next_attempt_at limit 1) n on h.state in ('open', 'held_back')
           left join lateral (
             select d.next_attempt_at from read.webhook_delivery d
             where d.webhook_id = h.webhook_id and d.state = 'pending'
               and work.scheduled_at(d.cycle_attempts, d.cycle_started_at, d.last_attempt_at) > $2
             order by work.scheduled_at(d.cycle_attempts, d.cycle_started_at, d.last_attempt_at) desc
             limit 1) a on n.next_attempt_at > $1`,
    values: [new Date(now), new Date(aheadAfter(now))],
  });
  return rows;
}
