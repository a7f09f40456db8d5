import { z } from 'zod';
import 'zod-openapi';
import { subscribableSchema } from '../../domain/webhooks/events.ts';
import { count, requestId, timestamp } from '../../http/contract/schemas/common.ts';

const name = z
  .string()
  .meta({ description: '1 to 100 characters after trimming.', example: 'Production receiver' });
const events = z.array(z.enum(subscribableSchema.options)).meta({
  description: 'What is delivered; at least one, none twice.',
  example: ['session.created', 'reveal.completed'],
});
const trackerId = z
  .uuid()
  .nullable()
  .meta({ description: 'The one tracker whose events are delivered; null: all trackers.' });

/** Totals of an endpoint's deliveries by state, over the 90 days that they are kept (contract, Webhooks 6). */
export const deliveryTotals = z
  .object({ pending: count, delivered: count, failed: count, cancelled: count, expired: count })
  .meta({ id: 'WebhookDeliveryTotals', description: 'Deliveries of the last 90 days by state.' });
export type DeliveryTotals = z.output<typeof deliveryTotals>;

const endpoint = {
  id: z.uuid(),
  name,
  url: z.string().meta({ description: 'Immutable.', example: 'https://hooks.example.com/doorplate' }),
  events,
  tracker_id: trackerId,
  enabled: z.boolean().meta({ description: 'false: paused, or deleted.' }),
  created_at: timestamp,
  updated_at: timestamp.meta({ description: 'Of the last change of name, events, enabled or secret.' }),
  deleted_at: timestamp.nullable(),
  secret_rotation_until: timestamp
    .nullable()
    .meta({ description: 'Until then the secret before signs as well; null: there is no overlap.' }),
  deliveries: deliveryTotals,
  request_id: requestId.optional(),
};

export const webhookBody = z
  .object(endpoint)
  .meta({ id: 'Webhook', description: 'An endpoint that events are delivered to.' });
export type WebhookBody = z.output<typeof webhookBody>;

export const webhookSecret = z
  .object({
    ...endpoint,
    signing_secret: z.string().meta({
      description: 'Shown this once: `whsec_` and the key material in base64. Keep it on the server.',
    }),
  })
  .meta({ id: 'WebhookSecret', description: 'An endpoint with its new secret.' });

export const webhookCreate = z
  .strictObject({
    name,
    url: z.string().meta({
      description:
        'Public HTTPS on port 443, at most 2,048 characters, without credentials or fragment. It cannot change.',
      example: 'https://hooks.example.com/doorplate',
    }),
    events,
    tracker_id: trackerId.optional(),
  })
  .meta({ id: 'WebhookCreate' });

export const webhookUpdate = z
  .strictObject({
    name: name.optional(),
    events: events.optional(),
    enabled: z
      .boolean()
      .optional()
      .meta({ description: 'false pauses; what happens meanwhile is not delivered later.' }),
  })
  .meta({ id: 'WebhookUpdate' });

/** What holds for the partner's webhooks (contract, Webhooks 7). */
export const webhookLimits = z
  .object({
    endpoints: count.meta({ description: 'Endpoints, deleted ones apart.' }),
    management_per_minute: count.meta({
      description: 'Calls to `/v1/webhooks` and below it, of the partner.',
    }),
    pending_deliveries: count.meta({ description: 'Pending deliveries of the partner.' }),
    concurrent_per_endpoint: count.meta({ description: 'Attempts under way at a time.' }),
    starts_per_second_per_endpoint: count.meta({ description: 'Attempts begun in a second.' }),
    event_bytes: count.meta({ description: 'Bytes of an event.' }),
    timeout_seconds: count.meta({ description: 'What a receiver has to answer.' }),
    attempts: count.meta({ description: 'Attempts in one retry cycle.' }),
    retry_days: count.meta({ description: 'Days that one retry cycle lasts.' }),
  })
  .meta({ id: 'WebhookLimits' });
export type WebhookLimits = z.output<typeof webhookLimits>;

/** Whether deliveries are under way. */
export const webhookWorker = z
  .object({
    status: z.enum(['running', 'stalled', 'stopped']).meta({
      description: 'stalled: what is due has waited for over a minute. stopped: nothing works on deliveries.',
    }),
    last_seen_at: timestamp
      .nullable()
      .meta({ description: 'When a process that delivers was last heard of.' }),
    due: count.meta({ description: "The partner's deliveries whose next attempt is due." }),
    oldest_due_at: timestamp.nullable().meta({ description: 'When the oldest of them became due.' }),
  })
  .meta({ id: 'WebhookWorker' });
export type WebhookWorker = z.output<typeof webhookWorker>;

export const webhookList = z
  .object({
    webhooks: z.array(webhookBody),
    limits: webhookLimits,
    worker: webhookWorker,
    request_id: requestId,
  })
  .meta({ id: 'WebhookList' });

export const webhookDeleted = z
  .object({ id: z.uuid(), deleted: z.literal(true), deleted_at: timestamp, request_id: requestId })
  .meta({ id: 'WebhookDeleted' });
