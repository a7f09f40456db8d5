import { z } from 'zod';
import type { ZodOpenApiObject, ZodOpenApiPathItemObject } from 'zod-openapi';
import { revealCompletedEvent, sessionCreatedEvent, webhookTestEvent } from './event-schemas.ts';

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
