/** Schemas and OpenAPI operations of webhook endpoints and their tests, of all methods. */
import { z } from 'zod';
import 'zod-openapi';
import { NO_DELIVERIES, subscribableSchema } from '../../domain/webhooks/events.ts';
import { bodyCodes, emptyBody } from '../../http/contract/responses.ts';
import { count, requestId, timestamp } from '../../http/contract/schemas/common.ts';
import type { ErrorCode } from '../../http/errors/error-catalog.ts';
import { deletedResponse, jsonBody, operationsOf, REQUEST, storableJson } from '../operation.ts';

const operation = operationsOf('Webhooks');

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

const deliveryTotals = z
  .object({ pending: count, delivered: count, failed: count, cancelled: count, expired: count })
  .meta({ id: 'WebhookDeliveryTotals', description: 'Deliveries of the last 90 days by state.' });

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

const ID = '8d2b9a52-1c5f-4a3e-9d60-2f0b6f1c7e34';

const enabled: WebhookBody = {
  id: ID,
  name: 'Production receiver',
  url: 'https://hooks.example.com/doorplate',
  events: ['session.created', 'reveal.completed'],
  tracker_id: null,
  enabled: true,
  created_at: '2026-03-14T09:26:53.589Z',
  updated_at: '2026-03-14T09:26:53.589Z',
  deleted_at: null,
  secret_rotation_until: null,
  deliveries: NO_DELIVERIES,
  request_id: REQUEST,
};
const signing_secret = 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=';
const created = { ...enabled, signing_secret };
const rotated = {
  ...created,
  updated_at: '2026-03-15T10:00:00.000Z',
  secret_rotation_until: '2026-03-16T10:00:00.000Z',
};
const paused: WebhookBody = { ...enabled, enabled: false, updated_at: '2026-03-15T10:00:00.000Z' };

/** What any call about webhooks can be refused with. */
export const webhookCodes = [
  'invalid_webhook_query',
  'unauthorized',
  'method_not_allowed',
  'rate_limit',
  'api_rate_limit',
  'webhook_management_limit',
  'api_busy',
  'webhooks_unavailable',
  'service_unavailable',
] as const satisfies readonly ErrorCode[];

/** The path of one endpoint. */
export const webhookPath = { webhook_id: z.uuid().meta({ description: 'The endpoint.' }) } as const;

const path = z.object(webhookPath);

/** GET /v1/webhooks */
export const listWebhooksOperation = operation('listWebhooks', {
  summary: 'All webhook endpoints',
  description:
    'Of the calling partner, paused ones too, deleted ones not; the limits; whether deliveries are under way.',
  responses: {
    '200': storableJson('The endpoints.', webhookList, {
      one: {
        webhooks: [enabled],
        limits: {
          endpoints: 5,
          management_per_minute: 120,
          pending_deliveries: 2_500_000,
          concurrent_per_endpoint: 32,
          starts_per_second_per_endpoint: 200,
          event_bytes: 1_048_576,
          timeout_seconds: 10,
          attempts: 12,
          retry_days: 7,
        },
        worker: {
          status: 'running',
          last_seen_at: '2026-03-14T09:26:53.589Z',
          due: 0,
          oldest_due_at: null,
        },
        request_id: REQUEST,
      },
    }),
  },
  codes: webhookCodes,
});

/** POST /v1/webhooks */
export const createWebhookOperation = operation('createWebhook', {
  summary: 'Create a webhook endpoint',
  description:
    'Subscribes to what happens from now on. `signing_secret` is shown this once: if the answer is lost, list the endpoints and rotate the secret of the one that was made.',
  requestBody: jsonBody(webhookCreate),
  responses: {
    '201': storableJson('The endpoint, with its secret.', webhookSecret, { created }),
  },
  codes: [
    'invalid_webhook',
    'invalid_webhook_url',
    ...bodyCodes,
    'tracker_not_found',
    ...webhookCodes,
    'webhook_limit',
  ],
});

/** GET /v1/webhooks/{webhook_id} */
export const getWebhookOperation = operation('getWebhook', {
  summary: 'One webhook endpoint',
  description: 'A deleted one too, for 90 days.',
  requestParams: { path },
  responses: { '200': storableJson('The endpoint.', webhookBody, { enabled, paused }) },
  codes: [...webhookCodes, 'webhook_not_found'],
});

/** PATCH /v1/webhooks/{webhook_id} */
export const updateWebhookOperation = operation('updateWebhook', {
  summary: 'Change, pause or resume a webhook endpoint',
  description:
    'What is left out stays. Events that are queued already are delivered as they were subscribed to; pending ones wait while it is paused, and what happens meanwhile is not delivered later.',
  requestParams: { path },
  requestBody: jsonBody(webhookUpdate),
  responses: { '200': storableJson('The endpoint as it is now.', webhookBody, { paused }) },
  codes: ['invalid_webhook', ...bodyCodes, ...webhookCodes, 'webhook_not_found'],
});

/** DELETE /v1/webhooks/{webhook_id} */
export const deleteWebhookOperation = operation('deleteWebhook', {
  summary: 'Delete a webhook endpoint for ever',
  description: 'Cancels pending deliveries and frees its slot. A repeat tells the original `deleted_at`.',
  requestParams: { path },
  responses: { '200': deletedResponse('WebhookDeleted', ID) },
  codes: [...bodyCodes, ...webhookCodes, 'webhook_not_found'],
});

/** POST /v1/webhooks/{webhook_id}/rotate-secret */
export const rotateWebhookSecretOperation = operation('rotateWebhookSecret', {
  summary: 'Give a webhook endpoint a new secret',
  description: 'For 24 hours the secret before signs as well, and the secret cannot be rotated again.',
  requestParams: { path },
  requestBody: emptyBody,
  responses: { '200': storableJson('The endpoint, with its new secret.', webhookSecret, { rotated }) },
  codes: [...bodyCodes, 'webhook_rotation_pending', ...webhookCodes, 'webhook_not_found'],
});

const webhookTest = z
  .object({
    delivery_id: z.uuid(),
    event_id: z.string(),
    status: z.literal('pending'),
    request_id: requestId,
  })
  .meta({ id: 'WebhookTest', description: 'A test that is queued.' });

/** POST /v1/webhooks/{webhook_id}/test */
export const testWebhookOperation = operation('testWebhook', {
  summary: 'Send a test event',
  description:
    'Queues a `webhook.test` for the endpoint. The answer says that it is accepted, not that it is delivered: the delivery says that.',
  requestParams: { path },
  requestBody: emptyBody,
  responses: {
    '202': storableJson('The test is queued.', webhookTest, {
      one: {
        delivery_id: '5f1c7a2e-9b1d-5c1e-8a43-0f2d6b7c9e10',
        event_id: 'evt_test_0b9c4f1e-2d3a-4c5b-8e6f-7a8b9c0d1e2f',
        status: 'pending',
        request_id: REQUEST,
      },
    }),
  },
  codes: [...bodyCodes, 'webhook_not_found', 'webhook_disabled', 'webhook_queue_full', ...webhookCodes],
});
