import type pg from 'pg';
import { NIL } from 'uuid';
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
  for await (const { webhook_id, day } of daysBefore(pool, before)) {
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

interface DayOfEndpoint {
  readonly webhook_id: string;
  readonly day: string;
}

const PAGE = 2_000;

/** Yields each day of an endpoint once, although it has a total for each state. */
async function* daysBefore(pool: pg.Pool, before: string): AsyncGenerator<DayOfEndpoint> {
  for (let after: DayOfEndpoint | undefined = { day: '-infinity', webhook_id: NIL }; after !== undefined; ) {
    const { rows }: pg.QueryResult<DayOfEndpoint> = await pool.query({
      name: 'days_of_old_deliveries',
      text: `select webhook_id, day::text from read.webhook_total
             where day < $1::date and (day, webhook_id) > ($2::date, $3::uuid)
             order by webhook_total.day, webhook_id limit ${PAGE}`,
      values: [before, after.day, after.webhook_id],
    });
    yield* new Map(rows.map((row) => [`${row.webhook_id} ${row.day}`, row])).values();
    after = rows.at(-1);
  }
}
