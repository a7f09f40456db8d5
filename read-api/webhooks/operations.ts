import { z } from 'zod';
import type { ZodOpenApiOperationObject } from 'zod-openapi';
import { bodyCodes, emptyBody, jsonResponse, refusalResponses } from '../../http/contract/responses.ts';
import type { ErrorCode } from '../../http/errors/error-catalog.ts';
import {
  type WebhookBody,
  webhookBody,
  webhookCreate,
  webhookDeleted,
  webhookList,
  webhookSecret,
  webhookUpdate,
} from './schemas.ts';

const ID = '8d2b9a52-1c5f-4a3e-9d60-2f0b6f1c7e34';
const REQUEST = '6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11';

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
  deliveries: { pending: 0, delivered: 0, failed: 0, cancelled: 0, expired: 0 },
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

const stored = { always: ['Cache-Control'] } as const;
const path = z.object(webhookPath);

/** GET /v1/webhooks */
export const listWebhooksOperation: ZodOpenApiOperationObject = {
  operationId: 'listWebhooks',
  tags: ['Webhooks'],
  summary: 'All webhook endpoints',
  description:
    'Of the calling partner, paused ones too, deleted ones not; the limits; whether deliveries are under way.',
  responses: {
    '200': jsonResponse(
      'The endpoints.',
      webhookList,
      {
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
      },
      stored,
    ),
    ...refusalResponses(webhookCodes),
  },
};

/** POST /v1/webhooks */
export const createWebhookOperation: ZodOpenApiOperationObject = {
  operationId: 'createWebhook',
  tags: ['Webhooks'],
  summary: 'Create a webhook endpoint',
  description:
    'Subscribes to what happens from now on. `signing_secret` is shown this once: if the answer is lost, list the endpoints and rotate the secret of the one that was made.',
  requestBody: { required: true, content: { 'application/json': { schema: webhookCreate } } },
  responses: {
    '201': jsonResponse('The endpoint, with its secret.', webhookSecret, { created }, stored),
    ...refusalResponses([
      'invalid_webhook',
      'invalid_webhook_url',
      ...bodyCodes,
      'tracker_not_found',
      ...webhookCodes,
      'webhook_limit',
    ]),
  },
};

const oneWebhook = (
  operationId: string,
  summary: string,
  description: string,
  success: ReturnType<typeof jsonResponse>,
  codes: readonly ErrorCode[],
): ZodOpenApiOperationObject => ({
  operationId,
  tags: ['Webhooks'],
  summary,
  description,
  requestParams: { path },
  responses: {
    '200': success,
    ...refusalResponses([...codes, ...webhookCodes, 'webhook_not_found']),
  },
});

/** GET /v1/webhooks/{webhook_id} */
export const getWebhookOperation = oneWebhook(
  'getWebhook',
  'One webhook endpoint',
  'A deleted one too, for 90 days.',
  jsonResponse('The endpoint.', webhookBody, { enabled, paused }, stored),
  [],
);

/** PATCH /v1/webhooks/{webhook_id} */
export const updateWebhookOperation: ZodOpenApiOperationObject = {
  ...oneWebhook(
    'updateWebhook',
    'Change, pause or resume a webhook endpoint',
    'What is left out stays. Events that are queued already are delivered as they were subscribed to; pending ones wait while it is paused, and what happens meanwhile is not delivered later.',
    jsonResponse('The endpoint as it is now.', webhookBody, { paused }, stored),
    ['invalid_webhook', ...bodyCodes],
  ),
  requestBody: { required: true, content: { 'application/json': { schema: webhookUpdate } } },
};

/** DELETE /v1/webhooks/{webhook_id} */
export const deleteWebhookOperation = oneWebhook(
  'deleteWebhook',
  'Delete a webhook endpoint for ever',
  'Cancels pending deliveries and frees its slot. A repeat tells the original `deleted_at`.',
  jsonResponse(
    'It is deleted.',
    webhookDeleted,
    { deleted: { id: ID, deleted: true, deleted_at: '2026-03-16T08:00:00.000Z', request_id: REQUEST } },
    stored,
  ),
  bodyCodes,
);

/** POST /v1/webhooks/{webhook_id}/rotate-secret */
export const rotateWebhookSecretOperation: ZodOpenApiOperationObject = {
  ...oneWebhook(
    'rotateWebhookSecret',
    'Give a webhook endpoint a new secret',
    'For 24 hours the secret before signs as well, and the secret cannot be rotated again.',
    jsonResponse('The endpoint, with its new secret.', webhookSecret, { rotated }, stored),
    [...bodyCodes, 'webhook_rotation_pending'],
  ),
  requestBody: emptyBody,
};
