import { z } from 'zod';
import type { ZodOpenApiOperationObject } from 'zod-openapi';
import { bodyCodes, emptyBody, jsonResponse, refusalResponses } from '../../http/contract/responses.ts';
import {
  type DeliveryBody,
  deliveryState,
  webhookDeliveryDetail,
  webhookDeliveryList,
} from './delivery-schemas.ts';
import { webhookCodes, webhookPath } from './operations.ts';

const REQUEST = '6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11';
const CURSOR = 'AAAAAAAAAAtO3kq6gY2i0mVbVt1yQ8bC';
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
  http_status: 503,
  error: 'http_status',
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
const stored = { always: ['Cache-Control'] } as const;

/** GET /v1/webhooks/{webhook_id}/deliveries */
export const listDeliveriesOperation: ZodOpenApiOperationObject = {
  operationId: 'listWebhookDeliveries',
  tags: ['Webhooks'],
  summary: 'The deliveries of an endpoint',
  description:
    'Newest first, 50 on a page, of the last 90 days; of a deleted endpoint too. Go on with `next_cursor` while `has_more` is true: what is created meanwhile moves nothing.',
  requestParams: {
    path: z.object(webhookPath),
    query: z.object({
      cursor: z.string().optional().meta({ description: '`next_cursor` of a page of the same filter.' }),
      status: deliveryState.optional().meta({ description: 'Deliveries in this state alone.' }),
    }),
  },
  responses: {
    '200': jsonResponse(
      'A page, which may be empty.',
      webhookDeliveryList,
      { one: { deliveries: [failed], has_more: true, next_cursor: CURSOR, request_id: REQUEST } },
      stored,
    ),
    ...refusalResponses([...webhookCodes, 'webhook_not_found']),
  },
};

const path = z.object({ ...webhookPath, delivery_id: z.uuid().meta({ description: 'The delivery.' }) });

/** GET /v1/webhooks/{webhook_id}/deliveries/{delivery_id} */
export const getDeliveryOperation: ZodOpenApiOperationObject = {
  operationId: 'getWebhookDelivery',
  tags: ['Webhooks'],
  summary: 'One delivery, with its event',
  description: 'The event as receivers get it, for as long as its payload is kept.',
  requestParams: { path },
  responses: {
    '200': jsonResponse('The delivery.', webhookDeliveryDetail, { failed: detail }, stored),
    ...refusalResponses([...webhookCodes, 'webhook_not_found', 'webhook_delivery_not_found']),
  },
};

/** POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/retry */
export const retryDeliveryOperation: ZodOpenApiOperationObject = {
  operationId: 'retryWebhookDelivery',
  tags: ['Webhooks'],
  summary: 'Deliver an event again',
  description:
    'Begins a new retry cycle with the same event id; no other reveal, no unit. A pending delivery stays as it is.',
  requestParams: { path },
  requestBody: emptyBody,
  responses: {
    '200': jsonResponse('The delivery, pending.', webhookDeliveryDetail, { retried }, stored),
    ...refusalResponses([
      ...bodyCodes,
      ...webhookCodes,
      'webhook_not_found',
      'webhook_delivery_not_found',
      'webhook_disabled',
      'webhook_event_expired',
      'webhook_queue_full',
    ]),
  },
};
