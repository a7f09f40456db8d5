/** Schemas and OpenAPI operations of recoveries after an outage of a receiver. */
import { z } from 'zod';
import 'zod-openapi';
import { bodyCodes } from '../../http/contract/responses.ts';
import { count, requestId, timestamp } from '../../http/contract/schemas/common.ts';
import { jsonBody, operationsOf, REQUEST, storableJson } from '../operation.ts';
import { webhookCodes, webhookPath } from './endpoint-schemas.ts';

const operation = operationsOf('Webhooks');

const recoveryId = z.uuid().meta({ description: 'The recovery.' });
const since = timestamp.meta({ description: 'It covers deliveries that were queued from then on.' });
const deliveries = count.meta({
  description: 'Deliveries that it covers, at least as counted at the request, up to 1,000,000.',
});

const webhookRecover = z
  .strictObject({
    since: timestamp.meta({ description: 'A UTC timestamp of the last 30 days, when the outage began.' }),
  })
  .meta({ id: 'WebhookRecover' });

const webhookRecoveryStarted = z
  .object({
    recovery_id: recoveryId,
    deliveries,
    status_url: z.string().meta({ description: 'Where its progress is: a relative URL.' }),
    request_id: requestId,
  })
  .meta({ id: 'WebhookRecoveryStarted', description: 'The recovery that runs.' });

const webhookRecovery = z
  .object({
    recovery_id: recoveryId,
    since,
    deliveries,
    pending: count,
    delivered: count,
    failed: count,
    cancelled: count.meta({
      description:
        'The endpoint was paused or deleted, a later recovery took them over, or they waited no more when their turn came.',
    }),
    expired: count,
    created_at: timestamp,
    request_id: requestId,
  })
  .meta({ id: 'WebhookRecovery', description: 'A recovery, and its deliveries by state.' });
export type RecoveryBody = z.output<typeof webhookRecovery>;

const WEBHOOK = '8d2b9a52-1c5f-4a3e-9d60-2f0b6f1c7e34';
const RECOVERY = '019cec49-6c1b-7d52-8a7e-3f0e0f6f2b12';

/** POST /v1/webhooks/{webhook_id}/recover */
export const recoverWebhookOperation = operation('recoverWebhook', {
  summary: 'Retry what failed or waits since an outage',
  description:
    'Begins a retry cycle for each delivery that was queued since then and failed, or waits because earlier attempts failed or the endpoint failed ten times in a row: with the same event id, once each. It goes on by itself. While one runs, that one is answered: until none of its deliveries is pending, or the endpoint is paused or deleted.',
  addition: true,
  requestParams: { path: z.object(webhookPath) },
  requestBody: jsonBody(webhookRecover),
  responses: {
    '202': storableJson('The recovery runs.', webhookRecoveryStarted, {
      one: {
        recovery_id: RECOVERY,
        deliveries: 663,
        status_url: `/v1/webhooks/${WEBHOOK}/recoveries/${RECOVERY}`,
        request_id: REQUEST,
      },
    }),
  },
  codes: [
    'invalid_webhook',
    ...bodyCodes,
    ...webhookCodes,
    'webhook_not_found',
    'webhook_disabled',
    'webhook_queue_full',
  ],
});

/** GET /v1/webhooks/{webhook_id}/recoveries/{recovery_id} */
export const getRecoveryOperation = operation('getWebhookRecovery', {
  summary: 'The progress of a recovery',
  description:
    'Its deliveries by state. A delivery that is retried again later counts here as it was before. Kept for 90 days.',
  addition: true,
  requestParams: { path: z.object({ ...webhookPath, recovery_id: recoveryId }) },
  responses: {
    '200': storableJson('The recovery.', webhookRecovery, {
      running: {
        recovery_id: RECOVERY,
        since: '2026-03-14T22:00:00.000Z',
        deliveries: 663,
        pending: 240,
        delivered: 423,
        failed: 0,
        cancelled: 0,
        expired: 0,
        created_at: '2026-03-15T07:30:00.000Z',
        request_id: REQUEST,
      },
    }),
  },
  codes: [...webhookCodes, 'webhook_not_found', 'webhook_delivery_not_found'],
});
