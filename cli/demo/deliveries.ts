/** Attempts at past deliveries, recorded as the worker records them. No request is sent for them. */
import type pg from 'pg';
import { deliveriesStream } from '../../commands/webhooks/queue-deliveries.ts';
import { appendOutcomes, attemptEvent } from '../../commands/webhooks/record-attempts.ts';
import { isoTime } from '../../domain/kernel/time.ts';
import { BREAKER_OPENS_AFTER, type DeliveryRef } from '../../domain/webhooks/events.ts';
import { afterAttempt, probeEveryMs } from '../../domain/webhooks/schedule.ts';
import type { EventStore, NewEvent } from '../../event-store/port.ts';

interface Waiting extends DeliveryRef {
  readonly createdAt: number;
  /** Of the next attempt, milliseconds. */
  dueAt: number;
  attempts: number;
}

interface Endpoint {
  failuresInRow: number;
  nextProbeAt: number;
}

interface Options {
  readonly store: EventStore;
  readonly pool: pg.Pool;
  readonly retryBaseMs: number;
  /** Whether this endpoint's receiver is down at an instant. */
  readonly isDown: (webhookId: string, at: number) => boolean;
  readonly random: () => number;
}

const ALWAYS = () => true;

/** Returns the function that records the attempts which were due until an instant, in the order of their times. */
export function createPastAttempts({ store, pool, retryBaseMs, isDown, random }: Options) {
  const known = new Set<string>();
  const waiting: Waiting[] = [];
  const endpoints = new Map<string, Endpoint>();

  async function readQueued(): Promise<void> {
    const { rows } = await pool.query<DeliveryRef & { created_at: Date }>(
      `select delivery_id, webhook_id, partner_id, created_at from read.webhook_delivery where state = 'pending' and attempts = 0`,
    );
    for (const { created_at, ...ref } of rows) {
      if (known.has(ref.delivery_id)) continue;
      known.add(ref.delivery_id);
      const createdAt = created_at.getTime();
      waiting.push({ ...ref, createdAt, dueAt: createdAt + 40 + Math.round(random() * 400), attempts: 0 });
    }
  }

  /** Makes an attempt's event, or puts the delivery off while the breaker is open. */
  function attempt(one: Waiting): NewEvent | null {
    const endpoint = endpoints.get(one.webhook_id) ?? { failuresInRow: 0, nextProbeAt: 0 };
    endpoints.set(one.webhook_id, endpoint);
    const startedAt = one.dueAt;
    if (endpoint.failuresInRow >= BREAKER_OPENS_AFTER && startedAt < endpoint.nextProbeAt) {
      one.dueAt = endpoint.nextProbeAt;
      return null;
    }
    const error = isDown(one.webhook_id, startedAt) ? 'connect' : null;
    const endedAt = startedAt + (error === null ? 30 + Math.round(random() * 300) : 3);
    const after = afterAttempt(
      { attempt: one.attempts + 1, ranMs: endedAt - one.createdAt, error, retryAfterMs: null },
      { baseMs: retryBaseMs, random: random() },
    );
    one.attempts += 1;
    endpoint.failuresInRow = error === null ? 0 : endpoint.failuresInRow + 1;
    endpoint.nextProbeAt = startedAt + probeEveryMs(retryBaseMs);
    one.dueAt = after.delayMs === null ? Number.POSITIVE_INFINITY : endedAt + after.delayMs;
    const { delivery_id, webhook_id, partner_id } = one;
    return attemptEvent(
      {
        ...{ delivery_id, webhook_id, partner_id, cycle: 1, attempt: one.attempts },
        ...{ started_at: isoTime(startedAt), ended_at: isoTime(endedAt), state: after.state },
        ...{ http_status: error === null ? 204 : null, error },
        next_attempt_at: after.delayMs === null ? null : isoTime(one.dueAt),
      },
      endedAt,
    );
  }

  /** @param now milliseconds */
  return async (now: number): Promise<void> => {
    await readQueued();
    const streams = new Map<string, NewEvent[]>();
    for (;;) {
      const next = waiting.reduce<Waiting | null>(
        (first, one) => (one.dueAt < (first?.dueAt ?? now) ? one : first),
        null,
      );
      if (next === null) break;
      const event = attempt(next);
      if (event === null) continue;
      const stream = deliveriesStream(next.webhook_id, isoTime(next.createdAt));
      streams.set(stream, [...(streams.get(stream) ?? []), event]);
      if (next.dueAt === Number.POSITIVE_INFINITY) waiting.splice(waiting.indexOf(next), 1);
    }
    await Promise.all([...streams].map((each) => appendOutcomes(store, ...each, ALWAYS)));
  };
}
