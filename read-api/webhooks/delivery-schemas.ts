/** Schemas and OpenAPI operations of deliveries, and of the events that endpoints are sent. */
import { z } from 'zod';
import 'zod-openapi';
import type { ZodOpenApiObject, ZodOpenApiPathItemObject } from 'zod-openapi';
import {
  attemptResult,
  deliveredTypeSchema,
  deliveryStateSchema,
  FAILED_RESULT,
} from '../../domain/webhooks/events.ts';
import { bodyCodes, emptyBody } from '../../http/contract/responses.ts';
import { count, requestId, timestamp } from '../../http/contract/schemas/common.ts';
import { CURSOR, operationsOf, REQUEST, storableJson } from '../operation.ts';
import { completedReveal } from '../reveals/schemas.ts';
import { sessionPreview } from '../sessions/schemas.ts';
import { webhookCodes, webhookPath } from './endpoint-schemas.ts';

const operation = operationsOf('Webhooks');

/** What receivers of webhooks get (contract, Webhooks 3). */

const envelope = <Type extends string, Data extends z.ZodType>(type: Type, example: string, data: Data) =>
  z.object({
    id: z.string().meta({ description: 'Deduplicate by it; same as the header webhook-id.', example }),
    type: z.literal(type),
    schema_version: z.literal(1),
    created_at: timestamp,
    data,
  });

export const sessionCreatedEvent = envelope(
  'session.created',
  'evt_session_019cec49-6c1b-7d52-8a7e-3f0e0f6f2b11',
  sessionPreview,
).meta({ id: 'SessionCreatedEvent', description: 'A pixel recorded a new session.' });

export const revealCompletedEvent = envelope(
  'reveal.completed',
  'evt_reveal_5b8f2a0e-6a2b-5c1d-9f43-0d7c3c643f1e',
  completedReveal,
).meta({ id: 'RevealCompletedEvent', description: 'A reveal completed, whatever its result.' });

export const webhookTestEvent = envelope(
  'webhook.test',
  'evt_test_0b9c4f1e-2d3a-4c5b-8e6f-7a8b9c0d1e2f',
  z.object({ message: z.string() }),
).meta({ id: 'WebhookTestEvent', description: 'The test that was asked for.' });

export const webhookEvent = z
  .discriminatedUnion('type', [sessionCreatedEvent, revealCompletedEvent, webhookTestEvent])
  .meta({ id: 'WebhookEvent', description: 'What receivers get.' });

const fields = {
  id: z.uuid(),
  event_id: z.string().meta({ example: 'evt_session_019cec49-6c1b-7d52-8a7e-3f0e0f6f2b11' }),
  type: z.enum(deliveredTypeSchema.options),
  state: deliveryStateSchema.meta({
    description:
      'pending: also while it is retried, paused or under way. cancelled: its endpoint was deleted. expired: its payload is gone.',
  }),
  attempts: count.meta({ description: 'Over all retry cycles.' }),
  created_at: timestamp,
  last_attempt_at: timestamp.nullable(),
  delivered_at: timestamp.nullable(),
  next_attempt_at: timestamp.nullable().meta({ description: 'null unless it is pending.' }),
  ...attemptResult,
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

const EVENT = 'evt_test_0b9c4f1e-2d3a-4c5b-8e6f-7a8b9c0d1e2f';

const failed: DeliveryBody = {
  id: '5f1c7a2e-9b1d-5c1e-8a43-0f2d6b7c9e10',
  event_id: EVENT,
  type: 'webhook.test',
  state: 'failed',
  attempts: 12,
  created_at: '2026-03-14T09:26:53.589Z',
  last_attempt_at: '2026-03-15T23:01:07.112Z',
  delivered_at: null,
  next_attempt_at: null,
  ...FAILED_RESULT,
};
const event = {
  id: EVENT,
  type: 'webhook.test' as const,
  schema_version: 1 as const,
  created_at: failed.created_at,
  data: { message: 'A test.' },
};
const detail = { ...failed, event, request_id: REQUEST };
const retried = { ...detail, state: 'pending' as const, next_attempt_at: '2026-03-16T08:00:00.000Z' };

/** GET /v1/webhooks/{webhook_id}/deliveries */
export const listDeliveriesOperation = operation('listWebhookDeliveries', {
  summary: 'The deliveries of an endpoint',
  description:
    'Newest first, 50 on a page, of the last 90 days; of a deleted endpoint too. Go on with `next_cursor` while `has_more` is true: what is created meanwhile moves nothing.',
  requestParams: {
    path: z.object(webhookPath),
    query: z.object({
      cursor: z.string().optional().meta({ description: '`next_cursor` of a page of the same filter.' }),
      status: deliveryStateSchema.optional().meta({ description: 'Deliveries in this state alone.' }),
    }),
  },
  responses: {
    '200': storableJson('A page, which may be empty.', webhookDeliveryList, {
      one: { deliveries: [failed], has_more: true, next_cursor: CURSOR, request_id: REQUEST },
    }),
  },
  codes: [...webhookCodes, 'webhook_not_found'],
});

const path = z.object({ ...webhookPath, delivery_id: z.uuid().meta({ description: 'The delivery.' }) });

/** GET /v1/webhooks/{webhook_id}/deliveries/{delivery_id} */
export const getDeliveryOperation = operation('getWebhookDelivery', {
  summary: 'One delivery, with its event',
  description: 'The event as receivers get it, for as long as its payload is kept.',
  requestParams: { path },
  responses: {
    '200': storableJson('The delivery.', webhookDeliveryDetail, { failed: detail }),
  },
  codes: [...webhookCodes, 'webhook_not_found', 'webhook_delivery_not_found'],
});

/** POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/retry */
export const retryDeliveryOperation = operation('retryWebhookDelivery', {
  summary: 'Deliver an event again',
  description:
    'Begins a new retry cycle with the same event id; no other reveal, no unit. A pending delivery stays as it is.',
  requestParams: { path },
  requestBody: emptyBody,
  responses: {
    '200': storableJson('The delivery, pending.', webhookDeliveryDetail, { retried }),
  },
  codes: [
    ...bodyCodes,
    ...webhookCodes,
    'webhook_not_found',
    'webhook_delivery_not_found',
    'webhook_disabled',
    'webhook_event_expired',
    'webhook_queue_full',
  ],
});

const header = z.object({
  'webhook-id': z.string().meta({ description: "The event's `id`." }),
  'webhook-timestamp': z.string().meta({ description: 'Unix seconds of this attempt.' }),
  'webhook-signature': z.string().meta({
    description:
      '`v1,` and a signature in base64; two of them, separated by a space, while a secret is rotated.',
  }),
});

const received = (operationId: string, summary: string, schema: z.ZodType): ZodOpenApiPathItemObject => ({
  post: {
    operationId,
    tags: ['Webhooks'],
    summary,
    description:
      'What an endpoint is sent. Verify the signature over the raw body, store the event unless its `id` is known, ' +
      'answer; it may come more than once and in any order.',
    security: [],
    requestParams: { header },
    requestBody: { required: true, content: { 'application/json': { schema } } },
    responses: {
      '2XX': { description: 'Taken.' },
      '4XX': { description: 'As any other status: an attempt in vain, the next one comes later.' },
    },
  },
});

/** What this service sends to the endpoints of partners, as the document's `webhooks`. */
export const sentEvents: NonNullable<ZodOpenApiObject['webhooks']> = {
  'session.created': received('receiveSessionCreated', 'A new session', sessionCreatedEvent),
  'reveal.completed': received('receiveRevealCompleted', 'A completed reveal', revealCompletedEvent),
  'webhook.test': received('receiveWebhookTest', 'A test', webhookTestEvent),
};
