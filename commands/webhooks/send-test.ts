import { randomUUID } from 'node:crypto';
import { accept, type Result, refuse } from '../../domain/kernel/decider.ts';
import { DAY, isoTime, utcDay } from '../../domain/kernel/time.ts';
import { testEnvelope, testEventId } from '../../domain/webhooks/envelope.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
import type { CommandContext } from '../handle.ts';
import type { QueueEntry } from '../queue-entry.ts';
import { currentEndpoint, type EndpointBatcher } from './manage-endpoints.ts';
import { type BodyKeys, deliveryId, queueDeliveries } from './queue-deliveries.ts';

export interface SendTestDeps {
  readonly store: EventStore;
  readonly endpoints: EndpointBatcher;
  readonly dayKeys: BodyKeys;
  /** A place in the partner's queue; null: it is full. */
  readonly enterQueue: (test: {
    readonly partner_id: string;
    readonly webhook_id: string;
    readonly event_id: string;
  }) => Promise<QueueEntry | null>;
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
) => Promise<Result<QueuedTest, TestRefusal>>;

/** As long as a session at most. */
const KEPT = 30 * DAY;

/**
 * Queues an event that says nothing for one enabled endpoint, whatever that is subscribed to.
 * @throws the port's errors: the test may be sent then or not, and another does no harm
 */
export const createSendTest =
  ({ store, endpoints, dayKeys, enterQueue }: SendTestDeps): SendTest =>
  async (partner_id, webhook_id, context) => {
    const endpoint = await currentEndpoint(endpoints, partner_id, webhook_id);
    if (!endpoint || endpoint.deleted_at !== null) return refuse('webhook_not_found');
    if (!endpoint.enabled) return refuse('webhook_disabled');
    const event_id = testEventId(randomUUID());
    const queueEntry = await enterQueue({ partner_id, webhook_id, event_id });
    if (queueEntry === null) return refuse('webhook_queue_full');
    const position = await queueDeliveries(store, dayKeys, [
      {
        envelope: testEnvelope(event_id, isoTime(context.at)),
        partner_id,
        webhook_ids: [webhook_id],
        day: utcDay(context.at),
        expires_at: isoTime(context.at + KEPT),
        source_position: null,
        context,
      },
    ]);
    queueEntry.happened();
    return accept({ delivery_id: deliveryId(webhook_id, event_id), event_id, position });
  };
