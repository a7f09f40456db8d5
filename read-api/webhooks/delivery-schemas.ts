import { z } from 'zod';
import 'zod-openapi';
import { deliveredTypeSchema, deliveryErrorSchema } from '../../domain/webhooks/events.ts';
import { count, requestId, timestamp } from '../../http/contract/schemas/common.ts';
import { webhookEvent } from './event-schemas.ts';

/** The states of a delivery as callers see them (contract, Webhooks 6). */
export const deliveryState = z.enum(['pending', 'delivered', 'failed', 'cancelled', 'expired']);
export type DeliveryState = z.output<typeof deliveryState>;

const fields = {
  id: z.uuid(),
  event_id: z.string().meta({ example: 'evt_session_019cec49-6c1b-7d52-8a7e-3f0e0f6f2b11' }),
  type: z.enum(deliveredTypeSchema.options),
  state: deliveryState.meta({
    description:
      'pending: also while it is retried, paused or under way. cancelled: its endpoint was deleted. expired: its payload is gone.',
  }),
  attempts: count.meta({ description: 'Over all retry cycles.' }),
  created_at: timestamp,
  last_attempt_at: timestamp.nullable(),
  delivered_at: timestamp.nullable(),
  next_attempt_at: timestamp.nullable().meta({ description: 'null unless it is pending.' }),
  http_status: z
    .int()
    .nullable()
    .meta({ description: 'Of the last attempt; null: the receiver did not answer.' }),
  error: z
    .enum(deliveryErrorSchema.options)
    .nullable()
    .meta({ description: 'Why the last attempt did not succeed.' }),
};

export const webhookDelivery = z.object(fields).meta({
  id: 'WebhookDelivery',
  description: 'An event on its way to one endpoint. Nothing of the answer of the receiver is kept.',
});
export type DeliveryBody = z.output<typeof webhookDelivery>;

export const webhookDeliveryDetail = z
  .object({
    ...fields,
    event: webhookEvent.nullable().meta({ description: 'null: its payload is gone.' }),
    request_id: requestId.optional(),
  })
  .meta({ id: 'WebhookDeliveryDetail' });

export const webhookDeliveryList = z
  .object({
    deliveries: z.array(webhookDelivery),
    has_more: z.boolean(),
    next_cursor: z.string().meta({ description: 'Where to go on; `""` on the last page.' }),
    request_id: requestId,
  })
  .meta({ id: 'WebhookDeliveryList' });
