import { z } from 'zod';
import type { ZodOpenApiOperationObject } from 'zod-openapi';
import { noContent, refusalResponses, responseHeaders } from '../../http/contract/responses.ts';

const { 'X-Request-ID': requestId, 'Cache-Control': cacheControl } = responseHeaders;

/** GET /tracking/a.js */
export const pixelOperation: ZodOpenApiOperationObject = {
  operationId: 'getPixel',
  tags: ['Sessions'],
  summary: 'The pixel',
  description:
    "The script that a tracker's snippet loads: the same for every tracker, cacheable, with an `ETag`. Under the service's host and the tracker's active custom domains alone.",
  requestParams: { query: z.object({ tracker_id: z.uuid().meta({ description: 'The tracker.' }) }) },
  responses: {
    '200': {
      description: 'JavaScript.',
      headers: z.object({ 'X-Request-ID': requestId, 'Cache-Control': cacheControl }),
      content: { 'text/javascript': { schema: z.string() } },
    },
    '304': noContent('Not changed since the `ETag` in `If-None-Match`.'),
    ...refusalResponses([
      'invalid_query',
      'invalid_tracker',
      'untrusted_collector',
      'tracker_not_found',
      'method_not_allowed',
      'tracker_deleted',
      'api_busy',
      'backend_unavailable',
      'backend_timeout',
      'service_unavailable',
    ]),
  },
};
