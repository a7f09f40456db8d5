import { z } from 'zod';
import 'zod-openapi';
import { outcomeSchema } from '../../domain/usage/events.ts';
import { count, timestamp } from '../../http/contract/schemas/common.ts';

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
export type EnrichmentStatusBody = z.output<typeof enrichmentStatus>;

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

export const usageBody = z
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
