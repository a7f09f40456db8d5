import type pg from 'pg';
import { NIL, v7 as uuid } from 'uuid';
import { toNewEvents } from '../../commands/handle.ts';
import { deliveriesStream } from '../../commands/webhooks/queue-deliveries.ts';
import { isoTime } from '../../domain/kernel/time.ts';
import { type DeliveryEvent, deliveryEvents } from '../../domain/webhooks/events.ts';
import { type EventStore, type Position, StreamExpired } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock.ts';
import { pause } from '../../platform/pause.ts';

export interface ExpireDeliveriesOptions {
  readonly store: EventStore;
  readonly pool: pg.Pool;
  readonly clock: Clock;
  /** Waits until the read model of deliveries reaches a position; false after a time limit. */
  readonly projected: (position: Position | null) => Promise<boolean>;
  readonly signal: AbortSignal;
}

interface ExpiredRow {
  readonly delivery_id: string;
  /** `payload_expires_at` as PostgreSQL text, which keeps its microseconds. */
  readonly cursor: string;
  readonly webhook_id: string;
  readonly partner_id: string;
  readonly created_at: Date;
}

const BATCH = 1_000;
const FIRST: Pick<ExpiredRow, 'cursor' | 'delivery_id'> = { cursor: '-infinity', delivery_id: NIL };

/**
 * Records which deliveries' payloads have expired, so that their totals follow; the API has reported them as expired
 * since that moment. The next run completes an interrupted one. Partners take no turns here: a million take some minutes, and
 * an index for turns would add a sixth to what each delivery and each attempt write.
 */
export const expireDeliveries = async (options: ExpireDeliveriesOptions): Promise<void> => {
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
    const streams = Map.groupBy(rows, (row) =>
      deliveriesStream(row.webhook_id, isoTime(row.created_at.getTime())),
    );
    for (const [stream, ofStream] of streams) await appendExpired(options, stream, ofStream);
    const last = rows.at(-1);
    if (last === undefined || rows.length < BATCH) return;
    // One event names up to a thousand deliveries: many events in one transaction of the projection would hold up all others.
    if (!(await projected(await store.head()))) return;
    after = last;
    // Pauses as long as the batch took, as other sweeps do.
    await pause(performance.now() - begun, signal);
  }
};

/** Expires a delivery whose payload is unreadable before its time. Idempotent. */
export const expireDelivery = (
  deps: Pick<ExpireDeliveriesOptions, 'store' | 'clock'>,
  delivery: DeliveryRef & { readonly created_at: string },
): Promise<void> => {
  const createdAt = isoTime(Date.parse(delivery.created_at));
  return appendExpired(deps, deliveriesStream(delivery.webhook_id, createdAt), [delivery]);
};

type DeliveryRef = Pick<ExpiredRow, 'delivery_id' | 'webhook_id' | 'partner_id'>;

const appendExpired = async (
  { store, clock }: Pick<ExpireDeliveriesOptions, 'store' | 'clock'>,
  stream: string,
  rows: readonly DeliveryRef[],
): Promise<void> => {
  const [first] = rows;
  if (first === undefined) return;
  const id = uuid();
  const { webhook_id, partner_id } = first;
  const event: DeliveryEvent = {
    type: 'webhooks.DeliveriesExpired.v1',
    data: { webhook_id, partner_id, delivery_ids: rows.map(({ delivery_id }) => delivery_id) },
  };
  const context = { correlationId: id, causationId: id, at: clock.now(), partnerId: partner_id };
  try {
    await store.append(stream, 'any', toNewEvents(deliveryEvents, [event], context));
  } catch (error) {
    // The stream itself has expired; the next sweep drops its rows.
    if (!(error instanceof StreamExpired)) throw error;
  }
};
