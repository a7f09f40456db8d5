/** Attempts at past deliveries, recorded as the worker records them. No request is sent for them. */
import { deliveriesStream } from '../../commands/webhooks/queue-deliveries.ts';
import { appendOutcomes, attemptEvent } from '../../commands/webhooks/record-attempts.ts';
import { isoTime } from '../../domain/kernel/time.ts';
import { BREAKER_OPENS_AFTER, type DeliveryRef } from '../../domain/webhooks/events.ts';
import { afterAttempt, probeEveryMs } from '../../domain/webhooks/schedule.ts';
import type { Past } from './past.ts';

interface Waiting extends DeliveryRef {
  readonly createdAt: number;
  /** When the next attempt is due, milliseconds. */
  dueAt: number;
  attempts: number;
}

/** Records the attempts of past deliveries in turn, by the rules of retries and of the breaker. `isDown`: at this instant, milliseconds. */
export function createPastAttempts(
  { runtime, advanceTo }: Past,
  isDown: (webhookId: string, at: number) => boolean,
) {
  const { store, pool, config } = runtime;
  const baseMs = config.RETRY_BASE_SECONDS * 1_000;
  const known = new Set<string>();
  const waiting = new Set<Waiting>();
  const endpoints = new Map<string, { failuresInRow: number; probeAt: number }>();

  async function attempt(one: Waiting): Promise<void> {
    const { delivery_id, webhook_id, partner_id, createdAt, dueAt: startedAt } = one;
    const { failuresInRow, probeAt } = endpoints.get(webhook_id) ?? { failuresInRow: 0, probeAt: 0 };
    if (failuresInRow >= BREAKER_OPENS_AFTER && startedAt < probeAt) {
      one.dueAt = probeAt;
      return;
    }
    const error = isDown(webhook_id, startedAt) ? ('connect' as const) : null;
    const endedAt = startedAt + (error === null ? 30 + Math.round(Math.random() * 300) : 3);
    advanceTo(endedAt);
    one.attempts += 1;
    const { state, delayMs } = afterAttempt(
      { attempt: one.attempts, ranMs: endedAt - createdAt, error, retryAfterMs: null },
      { baseMs, random: Math.random() },
    );
    const failed = error === null ? 0 : failuresInRow + 1;
    endpoints.set(webhook_id, { failuresInRow: failed, probeAt: startedAt + probeEveryMs(baseMs) });
    if (delayMs === null) waiting.delete(one);
    else one.dueAt = endedAt + delayMs;
    const times = { started_at: isoTime(startedAt), ended_at: isoTime(endedAt) };
    const next_attempt_at = delayMs === null ? null : isoTime(one.dueAt);
    const http_status = error === null ? 204 : null;
    const result = { state, http_status, error, next_attempt_at, signed_by: 'newest' } as const;
    const ofDelivery = { delivery_id, webhook_id, partner_id, cycle: 1, attempt: one.attempts };
    const event = attemptEvent({ ...ofDelivery, ...times, ...result }, endedAt);
    const stream = deliveriesStream(webhook_id, isoTime(createdAt));
    await appendOutcomes(store, stream, [event], () => true);
  }

  return {
    /** Reads the deliveries that were queued since the last time. */
    readQueued: async (): Promise<void> => {
      const { rows } = await pool.query<DeliveryRef & { created_at: Date }>(
        `select delivery_id, webhook_id, partner_id, created_at from read.webhook_delivery where state = 'pending' and attempts = 0`,
      );
      for (const { created_at, ...ref } of rows.filter(({ delivery_id }) => !known.has(delivery_id))) {
        const dueAt = runtime.clock.now() + 20 + Math.round(Math.random() * 200);
        waiting.add({ ...ref, createdAt: created_at.getTime(), dueAt, attempts: 0 });
        known.add(ref.delivery_id);
      }
    },
    /** Makes the attempts that are due before an instant, milliseconds. */
    makeUntil: async (at: number): Promise<void> => {
      for (;;) {
        const [first] = [...waiting].sort((a, b) => a.dueAt - b.dueAt);
        if (first === undefined || first.dueAt >= at) return;
        await attempt(first);
      }
    },
  };
}
