/** What receivers of webhooks get (contract, Webhooks 3). */
import { z } from 'zod';
import 'zod-openapi';
import { timestamp } from '../../http/contract/schemas/common.ts';
import { completedReveal } from '../reveals/schemas.ts';
import { sessionPreview } from '../sessions/schemas.ts';

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
