import { z } from 'zod';
import 'zod-openapi';
import { matchTypeSchema } from '../../domain/lookup/result.ts';
import { count, requestId, timestamp } from '../../http/contract/schemas/common.ts';
import { company, network } from '../../http/contract/schemas/company.ts';
import { companySignals } from '../../http/contract/schemas/company-signals.ts';

const matchType = z
  .enum(matchTypeSchema.options)
  .meta({ id: 'MatchType', description: 'unclassified is no proof that the address is not a business.' });

export const refreshStatus = z.enum(['not_needed', 'not_requested', 'pending', 'deferred']).meta({
  id: 'RefreshStatus',
  description:
    'not_requested: this GET started no work; deferred: `refresh_error` says why, POST again later.',
});
export type RefreshStatus = z.output<typeof refreshStatus>;

const refreshErrors = [
  'pending_limit',
  'enrichment_limit',
  'enrichment_capacity',
  'submission_unconfirmed',
  'lookup_failed',
] as const;

/** Why a refresh is deferred; null otherwise. */
export const refreshError = z
  .enum(refreshErrors)
  .nullable()
  .meta({ id: 'RefreshError', description: 'The reason for a deferred refresh.' });
export type RefreshError = z.output<typeof refreshError>;

/** What a saved result says, in a lookup and in the result of a reveal alike. */
export const savedResultFields = {
  match_type: matchType,
  company_found: z.boolean().meta({ description: 'true only for `match_type` company.' }),
  enriched_at: timestamp.nullable().meta({
    description:
      'When the saved result was made, not this request; of a past day, midnight UTC of that day alone.',
  }),
  stale: z.boolean().meta({ description: 'The saved result is due for a refresh; its fields are kept.' }),
  fresh_until: timestamp.nullable().meta({
    description: 'When the saved result becomes stale; of a result of a past day, a midnight UTC.',
  }),
  refresh_status: refreshStatus,
  refresh_error: refreshError,
  network,
  company: company
    .nullable()
    .meta({ description: 'For ISP and unclassified too; null only when every field is unavailable.' }),
};

export const lookupBody = z
  .object({
    ip: z.string().meta({ description: 'As submitted.' }),
    matched_ip: z.string().meta({ description: 'The address that matched, in canonical form.' }),
    status: z.literal('complete'),
    ...savedResultFields,
    request_id: requestId,
    company_signals: companySignals.optional(),
  })
  .meta({ id: 'Lookup', description: 'A saved result.' });
export type LookupBody = z.output<typeof lookupBody>;

export const pendingBody = z
  .object({
    ip: z.string().meta({ description: 'As submitted.' }),
    lookup_ip: z.string().meta({ description: 'In canonical form, as used for the enrichment.' }),
    status: z.enum(['pending', 'retrying']),
    company_found: z.null().meta({ description: 'Unknown while unfinished.' }),
    company: z.null(),
    submitted_at: timestamp.meta({ description: 'When the work was first reserved.' }),
    attempts: count.meta({ description: '0 while awaiting the first attempt.' }),
    next_retry_at: timestamp.nullable().meta({ description: 'Not an estimate of completion.' }),
    last_error: z
      .literal('lookup_failed')
      .nullable()
      .meta({ description: 'A failed attempt, not a negative match.' }),
    status_url: z.string().meta({ description: 'Relative URL of the GET lookup for this address.' }),
    poll_after_seconds: count.meta({ description: 'The least delay before polling; same as Retry-After.' }),
    request_id: requestId,
    company_signals: companySignals.optional(),
  })
  .meta({ id: 'Pending', description: 'Unfinished enrichment; never a negative match.' });
export type PendingBody = z.output<typeof pendingBody>;

/** The `ip` of a query or a body, as far as a schema can say; `invalid_ip` is the domain's to decide. */
export const lookupIp = z
  .string()
  .max(45)
  .meta({ description: 'One public IPv4 or global-unicast IPv6 address.', example: '8.8.8.8' });

/** The request body. */
export const lookupRequest = z.strictObject({ ip: lookupIp }).meta({ id: 'LookupRequest' });
