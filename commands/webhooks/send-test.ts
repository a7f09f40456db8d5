import { randomUUID } from 'node:crypto';
import { accept, type Result, refuse } from '../../domain/kernel/decider.ts';
import { DAY, isoTime, utcDay } from '../../domain/kernel/time.ts';
import { testEventId } from '../../domain/webhooks/envelope.ts';
import type { DeliveredType } from '../../domain/webhooks/events.ts';
import { sampleEnvelope } from '../../domain/webhooks/samples.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
import type { CommandContext } from '../handle.ts';
import type { ReserveDelivery } from '../queue-reservation.ts';
import { currentEndpoint, type EndpointBatcher } from './manage-endpoints.ts';
import { type BodyKeys, deliveryId, queueDeliveries } from './queue-deliveries.ts';

export interface SendTestDeps {
  readonly store: EventStore;
  readonly endpoints: EndpointBatcher;
  readonly dayKeys: BodyKeys;
  readonly reserveQueue: ReserveDelivery;
}

export type TestRefusal = 'webhook_not_found' | 'webhook_disabled' | 'webhook_queue_full';

export interface QueuedTest {
  readonly delivery_id: string;
  readonly event_id: string;
  readonly position: Position | null;
}

export type SendTest = (
  partnerId: string,
  webhookId: string,
  context: CommandContext,
  options?: {
    /** A sample of another event, with made-up data. Default: `webhook.test`. */
    readonly type?: DeliveredType;
    /** Whether the newest secret alone signs it, so that its answer tells whether the receiver has that one (contract, Webhooks 4). */
    readonly newestSecretOnly?: boolean;
  },
) => Promise<Result<QueuedTest, TestRefusal>>;

/** The longest lifetime of a session's events. */
const LIFETIME_MS = 30 * DAY;

/**
 * Queues a test event, or a sample of another, for one enabled endpoint, whatever its subscriptions.
 * @throws the port's errors: the test may be sent, and sending another is safe
 */
export const createSendTest =
  ({ store, endpoints, dayKeys, reserveQueue }: SendTestDeps): SendTest =>
  async (partner_id, webhook_id, context, { type = 'webhook.test', newestSecretOnly = false } = {}) => {
    const endpoint = await currentEndpoint(endpoints, partner_id, webhook_id);
    if (!endpoint || endpoint.deleted_at !== null) return refuse('webhook_not_found');
    if (!endpoint.enabled) return refuse('webhook_disabled');
    const event_id = testEventId(randomUUID());
    const queueReservation = await reserveQueue({ partner_id, webhook_id, event_id });
    if (queueReservation === null) return refuse('webhook_queue_full');
    const position = await queueDeliveries(store, dayKeys, [
      {
        envelope: sampleEnvelope(type, event_id, context.at),
        partner_id,
        webhook_ids: [webhook_id],
        key_day: utcDay(context.at),
        expires_at: isoTime(context.at + LIFETIME_MS),
        source_position: null,
        newest_secret_only: newestSecretOnly,
        context,
      },
    ]);
    queueReservation.confirm();
    return accept({ delivery_id: deliveryId(webhook_id, event_id), event_id, position });
  };
