import { accept, type Result, refuse } from '../../domain/kernel/decider.ts';
import { isoTime } from '../../domain/kernel/time.ts';
import {
  type EndpointRefusal,
  endpointsStream,
  isRecovering,
  type Recovery,
  recoverableSince,
} from '../../domain/webhooks/endpoints.ts';
import { type DeliveryEvent, deliveryEvents } from '../../domain/webhooks/events.ts';
import { type EventStore, type Position, StreamExpired } from '../../event-store/port.ts';
import { appendSafely, type CommandContext, handle, newId, toNewEvents } from '../handle.ts';
import type { ReserveDelivery } from '../queue-reservation.ts';
import { loadFromSnapshot } from '../snapshots.ts';
import { currentEndpoint, type EndpointBatcher, endpointAggregate } from './manage-endpoints.ts';
import { deliveriesStream } from './queue-deliveries.ts';

export interface RecoverDeps {
  readonly endpoints: EndpointBatcher;
  readonly reserveQueue: ReserveDelivery;
  /** Returns whether the endpoint's breaker is open. */
  readonly isHeldBack: (webhookId: string) => Promise<boolean>;
  /** Counts what the recovery would cover. `now` in milliseconds. */
  readonly count: (webhookId: string, since: string, heldBack: boolean, now: number) => Promise<number>;
}

export interface RequestedRecovery {
  readonly recovery: Recovery;
  readonly position: Position | null;
}

/** `webhookId`: null if the path has no valid id. */
export type RequestRecovery = (
  partnerId: string,
  webhookId: string | null,
  since: unknown,
  context: CommandContext,
) => Promise<Result<RequestedRecovery, EndpointRefusal>>;

/**
 * Requests the recovery of an endpoint since a UTC timestamp; while one runs, returns that one. A processor makes its deliveries due.
 * @throws the port's errors: the recovery may have been requested, and repeating is safe
 */
export const createRequestRecovery =
  ({ endpoints, reserveQueue, isHeldBack, count }: RecoverDeps): RequestRecovery =>
  async (partner_id, webhook_id, given, context) => {
    const { at } = context;
    const since = recoverableSince(given, at);
    if (since === null) return refuse('invalid_webhook');
    const endpoint = webhook_id && (await currentEndpoint(endpoints, partner_id, webhook_id));
    if (!webhook_id || !endpoint) return refuse('webhook_not_found');
    const held_back = await isHeldBack(webhook_id);
    const recovery_id = newId();
    // Only asks whether there is room: the processor reserves it later, for each failed delivery.
    const room = await reserveQueue({ partner_id, webhook_id, event_id: recovery_id });
    room?.release();
    // Counting is slow, and only a new recovery needs the number.
    const isNew = room !== null && endpoint.enabled && !isRecovering(endpoint);
    const deliveries = isNew ? await count(webhook_id, since, held_back, at) : 0;
    const result = await endpoints.submitCommand(
      endpointsStream(partner_id),
      {
        type: 'Recover',
        ...{ partner_id, webhook_id, recovery_id, since, deliveries, held_back, at },
        has_room: room !== null,
      },
      context,
      ({ byId }) => byId.get(webhook_id)?.recovery ?? null,
    );
    if (!result.ok) return result;
    const { value: recovery, position } = result.value;
    if (recovery === null) throw new TypeError('an accepted recovery is not in the state');
    return accept({ recovery, position });
  };

export interface RetriedDelivery {
  readonly delivery_id: string;
  readonly cycle: number;
  readonly created_at: Date;
}

/**
 * Makes deliveries of a recovery due. Repeating is safe, because projections take each delivery into a recovery once.
 * @throws the port's errors
 */
export async function retryInRecovery(
  store: EventStore,
  recovery: Pick<Recovery, 'recovery_id' | 'since' | 'requested_at'> & {
    readonly webhook_id: string;
    readonly partner_id: string;
  },
  deliveries: readonly RetriedDelivery[],
  context: CommandContext,
): Promise<void> {
  const { recovery_id, webhook_id, partner_id, since, requested_at } = recovery;
  const streams = Map.groupBy(deliveries, ({ created_at }) =>
    deliveriesStream(webhook_id, isoTime(created_at.getTime())),
  );
  for (const [stream, ofStream] of streams) {
    const event: DeliveryEvent = {
      type: 'webhooks.DeliveriesRetried.v1',
      data: {
        ...{ webhook_id, partner_id, recovery_id, since, requested_at },
        retried_at: isoTime(context.at),
        deliveries: ofStream.map(({ delivery_id, cycle }) => [delivery_id, cycle + 1]),
      },
    };
    try {
      await appendSafely(store, stream, 'any', toNewEvents(deliveryEvents, [event], context));
    } catch (error) {
      // The deliveries were forgotten after 90 days.
      if (!(error instanceof StreamExpired)) throw error;
    }
  }
}

/** Records that a recovery has ended. Idempotent. */
export async function completeRecovery(
  store: EventStore,
  {
    partner_id,
    webhook_id,
    recovery_id,
  }: Readonly<Record<'partner_id' | 'webhook_id' | 'recovery_id', string>>,
  context: CommandContext,
): Promise<void> {
  const stream = endpointsStream(partner_id);
  const loaded = await loadFromSnapshot(store, endpointAggregate, stream);
  const command = {
    type: 'CompleteRecovery',
    ...{ partner_id, webhook_id, recovery_id, at: context.at },
  } as const;
  await handle(store, endpointAggregate, stream, command, context, loaded);
}
