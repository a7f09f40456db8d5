import type { ZodOpenApiOperationObject } from 'zod-openapi';
import { jsonResponse, keyedCodes, refusalResponses } from '../../http/contract/responses.ts';
import { rangeQuery } from '../utc-range.ts';
import { type UsageBody, usageBody } from './schemas.ts';

const oneDay: UsageBody = {
  key_id: '0f3c9b62-7a3e-4a0e-9a53-0d4f1c9b8e77',
  name: 'production',
  from: '2026-03-14T00:00:00.000Z',
  to: '2026-03-15T00:00:00.000Z',
  timezone: 'UTC',
  limits: { requests_per_second: 50, new_enrichments_per_day: null, pending_enrichments: 10_000 },
  totals: { requests: 3, cache_hits: 2, average_processing_ms: 1.5 },
  outcomes: { company: 2, enqueued: 1 },
  hourly: [
    { hour: '2026-03-14T09:00:00.000Z', outcome: 'company', requests: 2, cache_hits: 2, duration_ms: 1.5 },
    { hour: '2026-03-14T09:00:00.000Z', outcome: 'enqueued', requests: 1, cache_hits: 0, duration_ms: 3 },
  ],
  enrichment: {
    pending: 1,
    submission_unconfirmed: 0,
    retrying: 0,
    oldest_pending_at: '2026-03-14T09:26:53.589Z',
    oldest_checked_at: null,
    completed_observed_last_minute: 0,
  },
  accounting: 'Authenticated lookup responses, counted before each is sent.',
};

/** GET /v1/usage */
export const getUsageOperation: ZodOpenApiOperationObject = {
  operationId: 'readUsage',
  tags: ['Usage'],
  summary: 'Usage of the calling key',
  description: 'Today (UTC) by default, at most 31 days. Reading it is not counted.',
  requestParams: { query: rangeQuery },
  responses: {
    '200': jsonResponse(
      'What was counted in the range.',
      usageBody,
      { oneDay },
      { always: ['Cache-Control'] },
    ),
    ...refusalResponses(['invalid_range', ...keyedCodes, 'uri_too_long', 'usage_unavailable']),
  },
};
