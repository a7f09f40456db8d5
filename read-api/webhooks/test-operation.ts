import { z } from 'zod';
import type { ZodOpenApiOperationObject } from 'zod-openapi';
import { bodyCodes, emptyBody, jsonResponse, refusalResponses } from '../../http/contract/responses.ts';
import { requestId } from '../../http/contract/schemas/common.ts';
import { webhookCodes, webhookPath } from './operations.ts';

const webhookTest = z
  .object({
    delivery_id: z.uuid(),
    event_id: z.string(),
    status: z.literal('pending'),
    request_id: requestId,
  })
  .meta({ id: 'WebhookTest', description: 'A test that is queued.' });

/** POST /v1/webhooks/{webhook_id}/test */
export const testWebhookOperation: ZodOpenApiOperationObject = {
  operationId: 'testWebhook',
  tags: ['Webhooks'],
  summary: 'Send a test event',
  description:
    'Queues a `webhook.test` for the endpoint. The answer says that it is accepted, not that it is delivered: the delivery says that.',
  requestParams: { path: z.object(webhookPath) },
  requestBody: emptyBody,
  responses: {
    '202': jsonResponse(
      'The test is queued.',
      webhookTest,
      {
        one: {
          delivery_id: '5f1c7a2e-9b1d-5c1e-8a43-0f2d6b7c9e10',
          event_id: 'evt_test_0b9c4f1e-2d3a-4c5b-8e6f-7a8b9c0d1e2f',
          status: 'pending',
          request_id: '6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11',
        },
      },
      { always: ['Cache-Control'] },
    ),
    ...refusalResponses([
      ...bodyCodes,
      'webhook_not_found',
      'webhook_disabled',
      'webhook_queue_full',
      ...webhookCodes,
    ]),
  },
};
