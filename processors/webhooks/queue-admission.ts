import { LRUCache } from 'lru-cache';
import type pg from 'pg';

/** An event that is about to be appended, and its subscribers. */
export interface Entering {
  readonly partner_id: string;
  readonly event_id: string;
  /** To every endpoint that is subscribed to this type for the tracker, or to one of the partner's. */
  readonly to: { readonly type: string; readonly tracker_id: string } | { readonly webhook_id: string };
}

/** Reserved slots in the partner's queue, one for each subscribed endpoint: the `QueueEntry` of commands. */
export interface QueueSlots {
  /** Gives the slots back, because the event was not appended. */
  release(): void;
  /** Marks the event as appended, so that its deliveries are queued soon. */
  confirm(): void;
}

export interface WebhookQueue {
  /** null: the queue is full, and it must not happen. */
  enter(entering: Entering): Promise<QueueSlots | null>;
  /** The partner's endpoints have changed. */
  forget(partnerId: string): void;
}

export interface WebhookQueueOptions {
  readonly pool: pg.Pool;
  readonly now: () => number;
  readonly deliveryIdOf: (webhookId: string, eventId: string) => string;
  /** Deliveries of a partner that may be pending. */
  readonly most: number;
  /** Bytes of bodies of a partner that may be kept. */
  readonly mostBytes: number;
  /** Ends the pause of the log's readers, in every process, so that the delivery is queued at once. */
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
  /** When this was asked for, by the process's steady clock. */
  readonly readAt: number;
}

const PARTNERS = 10_000;
/** A count stays valid this long while there is much room. */
const FRESH_MS = 250;
/** With less room than this, every request counts again. */
const MUCH = 1_000;
/** An event that is not queued after so long never will be: its endpoint was paused meanwhile. */
const UNDER_WAY_MS = 10_000;
/** Who has queued a delivery looks for the next ones without a pause, for longer than this. */
const HURRIED_MS = 500;

/**
 * The ceiling of a partner's queue. What this process lets in counts from that moment on, and from the read model once
 * it is queued there; what other processes let in at the same moment may go past the ceiling (architecture, rule 8).
 */
export const createWebhookQueue = (options: WebhookQueueOptions): WebhookQueue => {
  const { deliveryIdOf, most, mostBytes } = options;
  const known = new LRUCache<string, Queue>({ max: PARTNERS });
  const reading = new Map<string, Promise<Queue>>();
  /** By partner, the deliveries on their way into the queue, and when they set out. */
  const underWay = new Map<string, Map<string, number>>();
  let hurriedAt = Number.NEGATIVE_INFINITY;

  const hurry = (): void => {
    const now = performance.now();
    if (now - hurriedAt < HURRIED_MS) return;
    hurriedAt = now;
    options.hurry();
  };

  const read = (partnerId: string): Promise<Queue> => {
    const running = reading.get(partnerId);
    if (running) return running;
    const fresh = readQueue(options, partnerId, underWay.get(partnerId))
      .then((queue) => {
        known.set(partnerId, queue);
        return queue;
      })
      .finally(() => {
        reading.delete(partnerId);
        if (underWay.get(partnerId)?.size === 0) underWay.delete(partnerId);
      });
    reading.set(partnerId, fresh);
    return fresh;
  };

  const current = async (partnerId: string): Promise<Queue> => {
    const queue = known.get(partnerId);
    const fresh = queue !== undefined && performance.now() - queue.readAt < FRESH_MS;
    return fresh && hasMuchRoom(queue) ? queue : read(partnerId);
  };

  const hasMuchRoom = ({ endpoints, pending, bytes }: Queue): boolean =>
    endpoints.length === 0 || (pending + MUCH < most && bytes < mostBytes * 0.99);

  const enter = async ({ partner_id, event_id, to }: Entering): Promise<QueueSlots | null> => {
    const queue = await current(partner_id);
    const ids = subscribersOf(queue, to).map((webhookId) => deliveryIdOf(webhookId, event_id));
    if (ids.length === 0) return NO_SLOTS;
    const mine = underWay.get(partner_id) ?? new Map<string, number>();
    const arriving = ids.filter((id) => !mine.has(id)).length;
    if (queue.pending + mine.size + arriving > most || queue.bytes >= mostBytes) return null;
    underWay.set(partner_id, mine);
    for (const id of ids) mine.set(id, performance.now());
    return {
      release: () => {
        for (const id of ids) mine.delete(id);
      },
      confirm: hurry,
    };
  };
  return { enter, forget: (partnerId) => known.delete(partnerId) };
};

const NO_SLOTS: QueueSlots = { release: () => undefined, confirm: () => undefined };

const subscribersOf = ({ endpoints }: Queue, to: Entering['to']): string[] =>
  'webhook_id' in to
    ? [to.webhook_id]
    : endpoints
        .filter(
          ({ tracker_id, events }) =>
            events.includes(to.type) && (tracker_id ?? to.tracker_id) === to.tracker_id,
        )
        .map(({ webhook_id }) => webhook_id);

const readQueue = async (
  { pool, now }: WebhookQueueOptions,
  partnerId: string,
  underWay: Map<string, number> | undefined,
): Promise<Queue> => {
  const readAt = performance.now();
  const asked = [...(underWay?.keys() ?? [])];
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
    values: [partnerId, new Date(now()).toISOString().slice(0, 10), asked],
  });
  const { endpoints = [], pending = '0', bytes = '0', queued = [] } = rows[0] ?? {};
  for (const id of queued) underWay?.delete(id);
  for (const [id, since] of underWay ?? []) if (readAt - since > UNDER_WAY_MS) underWay?.delete(id);
  return { endpoints, pending: Number(pending), bytes: Number(bytes), readAt };
};
