import { LRUCache } from 'lru-cache';
import type pg from 'pg';
import { NIL } from 'uuid';
import type { QueueReservation } from '../../commands/queue-reservation.ts';
import { revealEventId, sessionEventId } from '../../domain/webhooks/envelope.ts';
import { coalesceNextOf } from '../../platform/limits/coalesce.ts';

/** An event that is about to be appended, and its recipients. */
export interface EventToQueue {
  readonly partner_id: string;
  readonly event_id: string;
  /** Every endpoint that is subscribed to this type for the tracker, or one endpoint. */
  readonly to: { readonly type: string; readonly tracker_id: string } | { readonly webhook_id: string };
}

export interface WebhookQueue {
  /** Reserves room for the deliveries of an event; null: the queue is full, so the event must not be appended. */
  reserve(event: EventToQueue): Promise<QueueReservation | null>;
  /** Reads the partner's endpoints again before the next reservation. */
  endpointsChanged(partnerId: string): void;
}

export interface WebhookQueueOptions {
  readonly pool: pg.Pool;
  readonly now: () => number;
  readonly deliveryIdOf: (webhookId: string, eventId: string) => string;
  /** Maximum of a partner's pending deliveries. */
  readonly maxPending: number;
  /** Maximum of a partner's stored bodies, bytes. */
  readonly maxBytes: number;
  /** Wakes the readers of the log in every process, so that the delivery is queued at once. */
  readonly hurry: () => void;
}

interface Endpoint {
  readonly webhook_id: string;
  readonly tracker_id: string | null;
  readonly events: readonly string[];
}

interface Queue {
  readonly endpoints: readonly Endpoint[];
  readonly pending: number;
  readonly bytes: number;
  /** `performance.now()` before the query. */
  readonly readAt: number;
}

const MAX_PARTNERS_CACHED = 10_000;
/** A count is cached this long while there is much room. */
const CACHED_MS = 250;
/** Deliveries; with less room than this, every reservation reads the queue again. */
const MIN_ROOM_TO_CACHE = 1_000;
/**
 * A reservation lapses after this time. Either no delivery comes, because the endpoint was paused meanwhile, or queueing is so far
 * behind that the delivery comes after its room may have been given away.
 */
const RESERVATION_MS = 10_000;
/** One wake-up is enough for this time: the processor that queues deliveries polls without a pause for longer. */
const WAKE_EVERY_MS = 500;

/**
 * Limits a partner's pending deliveries. Reservations of this process count at once; those of other processes count once
 * the read model has their deliveries, so that concurrent ones may exceed the limit (architecture, rule 8). A retried delivery has
 * a row already, so its reservation ends when the queue is next read.
 */
export function createWebhookQueue(options: WebhookQueueOptions): WebhookQueue {
  const { deliveryIdOf, maxPending, maxBytes } = options;
  const cached = new LRUCache<string, Queue>({ max: MAX_PARTNERS_CACHED });
  /** By partner: ids of reserved deliveries that are not in the read model yet, and when they were reserved. */
  const reservedOf = new Map<string, Map<string, number>>();
  let hurriedAt = Number.NEGATIVE_INFINITY;

  const hurry = (): void => {
    const now = performance.now();
    if (now - hurriedAt < WAKE_EVERY_MS) return;
    hurriedAt = now;
    options.hurry();
  };

  const read = coalesceNextOf(async (partnerId) => {
    const queue = await readQueue(options, partnerId, reservedOf.get(partnerId));
    cached.set(partnerId, queue);
    if (reservedOf.get(partnerId)?.size === 0) reservedOf.delete(partnerId);
    return queue;
  });

  const current = async (partnerId: string): Promise<Queue> => {
    const queue = cached.get(partnerId);
    const isCached = queue !== undefined && performance.now() - queue.readAt < CACHED_MS;
    return isCached && hasMuchRoom(queue) ? queue : read(partnerId);
  };

  const hasMuchRoom = ({ endpoints, pending, bytes }: Queue): boolean =>
    endpoints.length === 0 || (pending + MIN_ROOM_TO_CACHE < maxPending && bytes < maxBytes * 0.99);

  const reserve = async (event: EventToQueue): Promise<QueueReservation | null> => {
    const { partner_id, event_id, to } = event;
    const queue = await current(partner_id);
    const ids = subscribersOf(queue, to).map((webhookId) => deliveryIdOf(webhookId, event_id));
    if (ids.length === 0) return NO_SUBSCRIBERS;
    const reserved = reservedOf.get(partner_id) ?? new Map<string, number>();
    const arriving = ids.filter((id) => !reserved.has(id)).length;
    if (queue.pending + reserved.size + arriving > maxPending || queue.bytes >= maxBytes) return null;
    reservedOf.set(partner_id, reserved);
    for (const id of ids) reserved.set(id, performance.now());
    return {
      release: () => {
        for (const id of ids) reserved.delete(id);
      },
      confirm: hurry,
    };
  };
  return { reserve, endpointsChanged: (partnerId) => cached.delete(partnerId) };
}

const NO_SUBSCRIBERS: QueueReservation = { release: () => undefined, confirm: () => undefined };

const subscribersOf = ({ endpoints }: Queue, to: EventToQueue['to']): string[] =>
  'webhook_id' in to
    ? [to.webhook_id]
    : endpoints
        .filter(
          ({ tracker_id, events }) =>
            events.includes(to.type) && (tracker_id ?? to.tracker_id) === to.tracker_id,
        )
        .map(({ webhook_id }) => webhook_id);

async function readQueue(
  { pool, now }: WebhookQueueOptions,
  partnerId: string,
  reserved: Map<string, number> | undefined,
): Promise<Queue> {
  const readAt = performance.now();
  // Never empty: the planner takes an empty list to meet the condition of every partial index, and would read all of one.
  const ids = [NIL, ...(reserved?.keys() ?? [])];
  const { rows } = await pool.query<{
    endpoints: Endpoint[];
    pending: string;
    bytes: string;
    queued: string[];
  }>({
    name: 'webhook_queue',
    text: `select
      (select coalesce(json_agg(json_build_object(
                'webhook_id', webhook_id, 'tracker_id', tracker_id, 'events', events)), '[]')
       from read.webhook_subscription where partner_id = $1 and to_position is null) as endpoints,
      (select coalesce(sum(pending), 0) from read.webhook_health
       where partner_id = $1 and deleted_at is null) as pending,
      (select coalesce(sum(bytes), 0) from read.webhook_retained
       where partner_id = $1 and day >= $2::date) as bytes,
      (select coalesce(array_agg(delivery_id::text), '{}') from read.webhook_delivery
       where delivery_id = any ($3)) as queued`,
    values: [partnerId, new Date(now()).toISOString().slice(0, 10), ids],
  });
  const { endpoints = [], pending = '0', bytes = '0', queued = [] } = rows[0] ?? {};
  for (const id of queued) reserved?.delete(id);
  for (const [id, since] of reserved ?? []) if (readAt - since > RESERVATION_MS) reserved?.delete(id);
  return { endpoints, pending: Number(pending), bytes: Number(bytes), readAt };
}

type Reserve = Pick<WebhookQueue, 'reserve'>;
type ReserveFor<Id extends string> = (
  of: Record<'partner_id' | Id, string>,
) => Promise<QueueReservation | null>;

/** Reserves room for deliveries of a new session to the endpoints that subscribe to it. */
export function reserveForSession({ reserve }: Reserve): ReserveFor<'tracker_id' | 'session_id'> {
  return ({ partner_id, tracker_id, session_id }) =>
    reserve({
      partner_id,
      event_id: sessionEventId(session_id),
      to: { type: 'session.created', tracker_id },
    });
}

/** Reserves room for deliveries of a completed reveal to the endpoints that subscribe to it. */
export function reserveForReveal({ reserve }: Reserve): ReserveFor<'tracker_id' | 'reveal_id'> {
  return ({ partner_id, tracker_id, reveal_id }) =>
    reserve({ partner_id, event_id: revealEventId(reveal_id), to: { type: 'reveal.completed', tracker_id } });
}

/** Reserves room for a delivery to one endpoint. */
export function reserveForDelivery({ reserve }: Reserve): ReserveFor<'webhook_id' | 'event_id'> {
  return ({ partner_id, webhook_id, event_id }) => reserve({ partner_id, event_id, to: { webhook_id } });
}
