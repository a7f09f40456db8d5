import { z } from 'zod';
import { outcomeSchema } from '../../domain/usage/events.ts';
import { keyedCodes } from '../../http/contract/responses.ts';
import { count, timestamp } from '../../http/contract/schemas/common.ts';
import { operationsOf, storableJson } from '../operation.ts';
import { rangeQuery } from '../utc-range.ts';

const operation = operationsOf('Usage');

/** Outcomes of counted lookups (contract, Usage). */
const usageOutcome = z.enum(outcomeSchema.options).meta({ id: 'UsageOutcome' });

export const enrichmentStatus = z
  .object({
    pending: count.meta({ description: 'Unfinished unique enrichments.' }),
    submission_unconfirmed: count,
    retrying: count,
    oldest_pending_at: timestamp.nullable(),
    oldest_checked_at: timestamp.nullable(),
    completed_observed_last_minute: count.meta({ description: 'Not a guaranteed rate.' }),
  })
  .meta({
    id: 'EnrichmentStatus',
    description: 'As it stands now, shared by all keys of the partner, whatever the date range.',
  });

const revealUsage = z
  .object({
    billable_reveals: count,
    completed_reveals: count,
    hourly: z.array(
      z.object({
        hour: timestamp,
        billable_reveals: count,
        completed_reveals: count,
      }),
    ),
    accounting: z.string(),
  })
  .meta({ id: 'RevealUsage', description: 'Reveals made with this key; present once there is one.' });

const limits = z.object({
  requests_per_second: count,
  new_enrichments_per_day: count.nullable().meta({ description: 'null: no cap; 0: saved IPs only.' }),
  pending_enrichments: count.meta({ description: 'Shared by all keys of the partner.' }),
});

const hourlyUsage = z.object({
  hour: timestamp,
  outcome: usageOutcome,
  requests: count,
  cache_hits: count,
  duration_ms: z.number().min(0).meta({ description: 'The sum over the requests.' }),
});

const usageBody = z
  .object({
    key_id: z.string().meta({ description: 'The public identifier of the key, not its secret.' }),
    name: z.string(),
    from: timestamp.meta({ description: 'Inclusive.' }),
    to: timestamp.meta({ description: 'Exclusive.' }),
    timezone: z.literal('UTC'),
    limits,
    totals: z.object({ requests: count, cache_hits: count, average_processing_ms: z.number().min(0) }),
    outcomes: z.partialRecord(usageOutcome, count).meta({ description: 'Requests by outcome.' }),
    hourly: z.array(hourlyUsage).meta({ description: 'By hour, then outcome; only hours with requests.' }),
    enrichment: enrichmentStatus,
    accounting: z.string().meta({ description: 'What is counted, in words.' }),
    reveals: revealUsage.optional(),
  })
  .meta({ id: 'Usage', description: 'Usage of the calling key alone.' });
export type UsageBody = z.output<typeof usageBody>;

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
export const getUsageOperation = operation('readUsage', {
  summary: 'Usage of the calling key',
  description: 'Today (UTC) by default, at most 31 days. Reading it is not counted.',
  requestParams: { query: rangeQuery },
  responses: {
    '200': storableJson('What was counted in the range.', usageBody, { oneDay }),
  },
  codes: ['invalid_range', ...keyedCodes, 'uri_too_long', 'usage_unavailable'],
});
