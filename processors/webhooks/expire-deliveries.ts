/** Retention of webhooks: payloads expire with their session, deliveries with their payload, and metadata are deleted after 90 days. */

import type pg from 'pg';
import { NIL } from 'uuid';
import { ownContext, toNewEvents } from '../../commands/handle.ts';
import { deliveriesStream } from '../../commands/webhooks/queue-deliveries.ts';
import { inChunks } from '../../domain/kernel/chunks.ts';
import type { EventOf } from '../../domain/kernel/events.ts';
import { isoTime, utcDay } from '../../domain/kernel/time.ts';
import {
  type DeliveryEvent,
  type DeliveryRef,
  deliveryEvents,
  PAYLOAD_PREFIX,
  payloadExpiryEvents,
  WEBHOOK_HISTORY_MS,
} from '../../domain/webhooks/events.ts';
import { type Position, StreamExpired } from '../../event-store/port.ts';
import { pause } from '../../platform/clock/waiting.ts';
import { type Consumers, createConsumerProgress } from '../consumers.ts';
import type { ProcessorDeps } from '../deps.ts';
import { type Expiring, expiredItems } from '../expiry.ts';

export interface ExpireDeliveriesOptions extends ProcessorDeps {
  /** Waits until the read model of deliveries reaches a position; false after a time limit. */
  readonly projected: (position: Position | null) => Promise<boolean>;
  readonly signal: AbortSignal;
}

interface ExpiredRow extends DeliveryRef {
  /** `payload_expires_at` as PostgreSQL text, which keeps its microseconds. */
  readonly cursor: string;
  readonly created_at: Date;
}

const BATCH = 1_000;
const FIRST: Pick<ExpiredRow, 'cursor' | 'delivery_id'> = { cursor: '-infinity', delivery_id: NIL };

/**
 * Records which deliveries' payloads have expired, so that their totals follow; the API has reported them as expired
 * since that moment. The next run completes an interrupted one.
 */
export async function expireDeliveries(options: ExpireDeliveriesOptions): Promise<void> {
  const { store, pool, clock, projected, signal } = options;
  // Until the previous run's events are projected, its deliveries still appear as due.
  if (!(await projected(await store.head()))) return;
  for (let after = FIRST; !signal.aborted; ) {
    const begun = performance.now();
    const { rows } = await pool.query<ExpiredRow>({
      name: 'expired_deliveries',
      text: `select delivery_id, webhook_id, partner_id, created_at, payload_expires_at::text as cursor
             from read.webhook_delivery
             where payload_expires_at <= $1 and state <> 'expired'
               and (payload_expires_at, delivery_id) > ($2::timestamptz, $3::uuid)
             order by payload_expires_at, delivery_id limit ${BATCH}`,
      values: [new Date(clock.now()), after.cursor, after.delivery_id],
    });
    await recordExpiredDeliveries(options, rows);
    const last = rows.at(-1);
    if (last === undefined || rows.length < BATCH) return;
    // One event names up to a thousand deliveries: many events in one transaction of the projection would hold up all others.
    if (!(await projected(await store.head()))) return;
    after = last;
    // Pauses as long as the batch took, as other sweeps do.
    await pause(performance.now() - begun, signal);
  }
}

type AppendDeps = Pick<ExpireDeliveriesOptions, 'store' | 'clock'>;
type ExpiredDelivery = DeliveryRef & { readonly created_at: Date };

/** Records that payloads are gone, at their expiry or before: one event for the deliveries of an endpoint and day. Idempotent. */
export async function recordExpiredDeliveries(
  deps: AppendDeps,
  rows: readonly ExpiredDelivery[],
): Promise<void> {
  const streams = Map.groupBy(rows, ({ webhook_id, created_at }) =>
    deliveriesStream(webhook_id, isoTime(created_at.getTime())),
  );
  for (const [stream, ofStream] of streams) {
    for (const chunk of inChunks(ofStream, BATCH)) await appendExpired(deps, stream, chunk);
  }
}

async function appendExpired(
  { store, clock }: AppendDeps,
  stream: string,
  rows: readonly DeliveryRef[],
): Promise<void> {
  const [first] = rows;
  if (first === undefined) return;
  const { webhook_id, partner_id } = first;
  const event: DeliveryEvent = {
    type: 'webhooks.DeliveriesExpired.v1',
    data: { webhook_id, partner_id, delivery_ids: rows.map(({ delivery_id }) => delivery_id) },
  };
  try {
    await store.append(stream, 'any', toNewEvents(deliveryEvents, [event], ownContext(clock, partner_id)));
  } catch (error) {
    // The stream itself has expired; the next sweep drops its rows.
    if (!(error instanceof StreamExpired)) throw error;
  }
}

/**
 * Deletes delivery metadata past its retention, one stream (a day of an endpoint) at a time. `forget` drops their rows
 * from the read model; until then a repeated run finds the streams again.
 */
export async function deleteOldDeliveries(
  { store, pool, clock }: ProcessorDeps,
  consumers: Consumers,
  forget: (before: string) => Promise<void>,
): Promise<void> {
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
}

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

/** Expires the payloads of webhook events together with their session. */
export const expiringPayloads: Expiring = {
  name: 'payloads',
  prefix: PAYLOAD_PREFIX,
  firstId: '',
  table: 'read.webhook_payload',
  due: expiredItems({
    table: 'read.webhook_payload',
    id: 'event_id',
    idType: 'text',
    columns: `'${PAYLOAD_PREFIX}' || i.event_id as stream, i.last_revision, false as lives,
      i.last_position <= $2 and $3::date is not null as ready`,
  }),
  counted: '$2::date is not null',
  present: 'select event_id::text as id from read.webhook_payload where event_id = any ($1::text[])',
  schemas: payloadExpiryEvents,
  expiredEvent: (partner_id, events): EventOf<typeof payloadExpiryEvents> => ({
    type: 'webhooks.PayloadsExpired.v1',
    data: { partner_id, events },
  }),
};
