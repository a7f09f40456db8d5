import type pg from 'pg';
import { deliveriesStream } from '../../commands/webhooks/queue-deliveries.ts';
import { utcDay } from '../../domain/kernel/time.ts';
import { WEBHOOK_HISTORY_MS } from '../../domain/webhooks/events.ts';
import type { EventStore } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock.ts';
import { type Consumers, createConsumerProgress } from '../consumers.ts';

export interface DeleteOldDeliveriesDeps {
  readonly store: EventStore;
  readonly pool: pg.Pool;
  readonly clock: Clock;
}

/**
 * Deletes delivery metadata past its retention, one stream (a day of an endpoint) at a time. `forget` drops their rows
 * from the read model; until then a repeated run finds the streams again.
 */
export const deleteOldDeliveries = async (
  { store, pool, clock }: DeleteOldDeliveriesDeps,
  consumers: Consumers,
  forget: (before: string) => Promise<void>,
): Promise<void> => {
  const before = utcDay(clock.now() - WEBHOOK_HISTORY_MS);
  const passed = await createConsumerProgress(pool, consumers).passed();
  const { rows } = await pool.query<{ webhook_id: string; day: string }>(
    'select distinct webhook_id, day::text from read.webhook_total where day < $1::date',
    [before],
  );
  for (const { webhook_id, day } of rows) {
    const stream = deliveriesStream(webhook_id, day);
    for await (const last of store.readStream(stream, { direction: 'backwards', limit: 1 })) {
      if (passed === null || last.position > passed) {
        throw new Error(`${stream} has not been read by all consumers`);
      }
      await store.expire(stream, last.revision);
    }
  }
  await forget(before);
};
