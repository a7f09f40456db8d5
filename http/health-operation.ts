import type { ZodOpenApiOperationObject } from 'zod-openapi';
import { jsonResponse, refusalResponses } from './responses.ts';
import { healthBody } from './schemas/common.ts';

/** GET /healthz */
export const healthOperation: ZodOpenApiOperationObject = {
  operationId: 'readHealth',
  tags: ['Health'],
  summary: 'Whether the process is running',
  description: 'Needs no key. Does not guarantee that lookups are available.',
  responses: {
    '200': jsonResponse('The process is running.', healthBody, { ok: { status: 'ok' } }),
    ...refusalResponses(['method_not_allowed', 'service_unavailable']),
  },
};
