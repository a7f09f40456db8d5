/** GET /healthz: whether the process serves (contract, Operation 3). */
import { z } from 'zod';
import type { ZodOpenApiOperationObject } from 'zod-openapi';
import { jsonResponse, refusalResponses } from '../contract/responses.ts';
import type { PublicRoute, Reply } from '../contract/route.ts';
import { refusal } from '../errors/error-catalog.ts';

const healthBody = z
  .object({ status: z.literal('ok') })
  .meta({ id: 'Health', description: 'The process is running; lookups may still be unavailable.' });

const healthOperation: ZodOpenApiOperationObject = {
  operationId: 'readHealth',
  tags: ['Health'],
  summary: 'Whether the process is running',
  description: 'Needs no key. Does not guarantee that lookups are available.',
  responses: {
    '200': jsonResponse('The process is running.', healthBody, { ok: { status: 'ok' } }),
    ...refusalResponses(['method_not_allowed', 'service_unavailable']),
  },
};

const ok: Reply = { status: 200, body: '{"status":"ok"}', headers: { 'cache-control': 'no-store' } };

/** GET /healthz (contract, Operation 3): 503 while `isHealthy` says so, for example during a shutdown. */
export function healthRoute(isHealthy: () => boolean): PublicRoute {
  return {
    method: 'GET',
    path: '/healthz',
    access: 'public',
    body: 'none',
    bodyLimit: 0,
    handle: (request) => (isHealthy() ? ok : refusal(request, 'service_unavailable')),
    operation: healthOperation,
  };
}
