import { v5 as uuidv5 } from 'uuid';
import type { Envelope } from '../../domain/webhooks/envelope.ts';
import {
  DELIVERIES_PREFIX,
  type DeliveryEvent,
  deliveryEvents,
  PAYLOAD_PREFIX,
  type PayloadEvent,
  payloadEvents,
  type SealedBody,
} from '../../domain/webhooks/events.ts';
import { type EventStore, type NewEvent, type Position, StreamExpired } from '../../event-store/port.ts';
import { appendSafely, type CommandContext, conflictRetries, toNewEvents } from '../handle.ts';

/** Daily keys that seal bodies. */
export interface BodyKeys {
  of(day: string): Promise<{ seal(plain: Buffer, about: string): Buffer } | null>;
}

interface QueueOptions {
  /**
   * Whether an earlier call may have stored some of the bodies, which may have expired or been erased since. Then a delivery is queued
   * after its body is known to be stored; otherwise both are appended at the same time.
   */
  readonly mayRepeat?: boolean;
  /** Called with each body that this call has stored, not with one that was there. */
  readonly onStored?: ((body: SealedBody) => void) | undefined;
}

/** An event, with the endpoints that it is queued for. */
export interface EventForEndpoints {
  readonly envelope: Envelope;
  readonly partner_id: string;
  readonly webhook_ids: readonly string[];
  /**
   * UTC day (`YYYY-MM-DD`) whose key seals the body: that of the session's start, or of the test. The
   * delivery's stream is named for the day of `created_at`, which may be later.
   */
  readonly key_day: string;
  readonly expires_at: string;
  /** Log position of the event behind the notification; null for a test. */
  readonly source_position: string | null;
  /** Whether the newest secret alone signs it. Default: every secret that is valid. */
  readonly newest_secret_only?: boolean;
  readonly context: CommandContext;
}

const DELIVERY_ID_NAMESPACE = '9e0d1f52-8a2f-4a2d-9c57-5d2c8f0b7a61';

/** Derives the delivery's id from endpoint and event, so that queueing again makes no second one. */
export const deliveryId = (webhookId: string, eventId: string): string =>
  uuidv5(`${webhookId} ${eventId}`, DELIVERY_ID_NAMESPACE);

/** `createdAt`: the envelope's `created_at` (ISO 8601), or its UTC day. */
export const deliveriesStream = (webhookId: string, createdAt: string): string =>
  `${DELIVERIES_PREFIX}${webhookId}-${createdAt.slice(0, 10)}`;

/**
 * Stores bodies, and queues them for their endpoints. Idempotent; expired events are skipped.
 * @returns position of the last queued delivery; null if there is none or the store does not report it
 * @throws the port's errors; part of the work may then be done
 */
export async function queueDeliveries(
  store: EventStore,
  keys: BodyKeys,
  forEndpoints: readonly EventForEndpoints[],
  { mayRepeat = true, onStored }: QueueOptions = {},
): Promise<Position | null> {
  const sealed = await Promise.all(forEndpoints.map((one) => sealPayload(keys, one)));
  const storing = sealed.map(async (payload) => {
    if (payload === null) return false;
    const outcome = await appendOnce(store, `${PAYLOAD_PREFIX}${payload.body.event_id}`, payload.events);
    if (outcome === 'stored') onStored?.(payload.body);
    return outcome !== 'expired';
  });
  const stored = mayRepeat ? await Promise.all(storing) : sealed.map((payload) => payload !== null);
  const queued = forEndpoints
    .filter((_, index) => stored[index])
    .flatMap((one) => one.webhook_ids.map((webhookId) => ({ one, webhookId })));
  const streams = Map.groupBy(queued, ({ one, webhookId }) =>
    deliveriesStream(webhookId, one.envelope.created_at),
  );
  const queueing = [...streams].map(([stream, ofStream]) => queue(store, stream, ofStream));
  const [positions] = await Promise.all([Promise.all(queueing), Promise.all(storing)]);
  return positions.reduce((last, position) => ((position ?? -1n) > (last ?? -1n) ? position : last), null);
}

/** Makes the event that stores a body; null if the day key is destroyed. */
async function sealPayload(
  keys: BodyKeys,
  { envelope, partner_id, key_day, expires_at, context }: EventForEndpoints,
): Promise<{ readonly body: SealedBody; readonly events: readonly NewEvent[] } | null> {
  const key = await keys.of(key_day);
  if (key === null) return null;
  const body = Buffer.from(JSON.stringify(envelope));
  const sealed = key.seal(body, envelope.id);
  const event: PayloadEvent = {
    type: 'webhooks.PayloadStored.v1',
    data: {
      event_id: envelope.id,
      partner_id,
      type: envelope.type,
      day: key_day,
      sealed: sealed.toString('base64'),
      bytes: body.length,
      created_at: envelope.created_at,
      expires_at,
    },
  };
  return {
    body: { event_id: envelope.id, day: key_day, sealed, expires_at: new Date(expires_at) },
    events: toNewEvents(payloadEvents, [event], { ...context, expiresAt: expires_at }),
  };
}

/** Appends to a new stream unless it already has a body, which then stays; that may have expired. */
async function appendOnce(
  store: EventStore,
  stream: string,
  events: readonly NewEvent[],
): Promise<'stored' | 'kept' | 'expired'> {
  const afterConflict = conflictRetries();
  for (;;) {
    try {
      await appendSafely(store, stream, 'no_stream', events);
      return 'stored';
    } catch (error) {
      if (error instanceof StreamExpired) return 'expired';
      await afterConflict(error);
      // A conflict alone does not prove that the body is stored: the conflicting event may be replicated later, or never. Whether it
      // has expired is asked once it can be read.
      if (await holdsEvents(store, stream, true))
        return (await holdsEvents(store, stream, false)) ? 'kept' : 'expired';
    }
  }
}

async function holdsEvents(store: EventStore, stream: string, includeExpired: boolean): Promise<boolean> {
  const events = await Array.fromAsync(store.readStream(stream, { limit: 1, includeExpired }));
  return events.length > 0;
}

async function queue(
  store: EventStore,
  stream: string,
  ofStream: readonly { readonly one: EventForEndpoints; readonly webhookId: string }[],
): Promise<Position | null> {
  const events = ofStream.flatMap(({ one, webhookId }) => {
    const { envelope, partner_id, expires_at, source_position, newest_secret_only = false, context } = one;
    const event: DeliveryEvent = {
      type: 'webhooks.DeliveryQueued.v1',
      data: {
        delivery_id: deliveryId(webhookId, envelope.id),
        webhook_id: webhookId,
        partner_id,
        event_id: envelope.id,
        type: envelope.type,
        created_at: envelope.created_at,
        payload_expires_at: expires_at,
        source_position,
        newest_secret_only,
      },
    };
    return toNewEvents(deliveryEvents, [event], context);
  });
  try {
    return (await store.append(stream, 'any', events)).position;
  } catch (error) {
    if (error instanceof StreamExpired) return null;
    throw error;
  }
}
