import { z } from 'zod';
import { matchTypeSchema } from '../../domain/lookup/result.ts';
import { bodyCodes, jsonResponse, keyedCodes } from '../../http/contract/responses.ts';
import { count, requestId, timestamp } from '../../http/contract/schemas/common.ts';
import { company, network } from '../../http/contract/schemas/company.ts';
import { companySignals } from '../../http/contract/schemas/company-signals.ts';
import { operationsOf, REQUEST } from '../operation.ts';

const operation = operationsOf('Lookup');

/** The suggested least delay between polls, seconds. */
export const POLL_SECONDS = 15;

const matchType = z
  .enum(matchTypeSchema.options)
  .meta({ id: 'MatchType', description: 'unclassified is no proof that the address is not a business.' });

const refreshStatus = z.enum(['not_needed', 'not_requested', 'pending', 'deferred']).meta({
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
const refreshError = z
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

const lookupBody = z
  .object({
    ip: z.string().meta({ description: 'As submitted.' }),
    matched_ip: z.string().meta({ description: 'The address that matched, in canonical form.' }),
    status: z.literal('complete'),
    ...savedResultFields,
    request_id: requestId,
    company_signals: companySignals.optional(),
  })
  .meta({ id: 'Lookup', description: 'A saved result.' });
type LookupBody = z.output<typeof lookupBody>;

const pendingBody = z
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
type PendingBody = z.output<typeof pendingBody>;

/** The `ip` of a query or a body, as far as a schema can say; `invalid_ip` is the domain's to decide. */
const lookupIp = z
  .string()
  .max(45)
  .meta({ description: 'One public IPv4 or global-unicast IPv6 address.', example: '8.8.8.8' });

/** The request body. */
const lookupRequest = z.strictObject({ ip: lookupIp }).meta({ id: 'LookupRequest' });

const found: LookupBody = {
  ip: '8.8.8.8',
  matched_ip: '8.8.8.8',
  status: 'complete',
  match_type: 'company',
  company_found: true,
  enriched_at: '2026-03-14T09:26:53.589Z',
  stale: false,
  fresh_until: '2026-04-13T09:26:53.589Z',
  refresh_status: 'not_needed',
  refresh_error: null,
  network: {
    connection_type: 'hosting',
    audience_type: 'business',
    audience_group: null,
    detail_level: 'organization',
    is_isp: false,
  },
  company: {
    name: 'Google LLC',
    website: 'https://www.google.com',
    brand_name: 'Google',
    linkedin_url: null,
    industry: 'Technology',
    industry_subcategory: null,
    employees: '10001+',
    revenue_band: null,
    annual_revenue: null,
    naics_code: null,
    sic_code: null,
    city: 'Mountain View',
    region: 'California',
    postal_code: '94043',
    country_code: 'US',
    country_name: 'United States',
  },
  request_id: REQUEST,
};

const pending: PendingBody = {
  ip: '2001:4860:4860:0:0:0:0:8888',
  lookup_ip: '2001:4860:4860::8888',
  status: 'pending',
  company_found: null,
  company: null,
  submitted_at: '2026-03-14T09:26:53.589Z',
  attempts: 0,
  next_retry_at: null,
  last_error: null,
  status_url: '/v1/lookup?ip=2001%3A4860%3A4860%3A%3A8888',
  poll_after_seconds: 15,
  request_id: REQUEST,
};

const answers = {
  '200': jsonResponse(
    'A saved result. It may be kept for 60 seconds if no refresh is needed.',
    lookupBody,
    { found },
    {
      always: ['Cache-Control'],
      optional: ['Retry-After'],
    },
  ),
  '202': jsonResponse(
    'Unfinished enrichment; poll `status_url`.',
    pendingBody,
    { pending },
    {
      always: ['Location', 'Retry-After', 'Cache-Control'],
    },
  ),
};

/** Both methods give these. `uri_too_long` is special to lookup and usage. */
const sharedCodes = [
  'invalid_ip',
  'invalid_query',
  ...keyedCodes,
  'uri_too_long',
  'lookup_capacity',
  'submission_unconfirmed',
  'lookup_reconciliation_required',
  'usage_unavailable',
] as const;

/** POST /v1/lookup */
export const postLookupOperation = operation('requestLookup', {
  summary: 'Look up an IP and request enrichment on a miss',
  description:
    'Answers 200 with what is saved, and requests a refresh of it when it is stale or incomplete; else ' +
    'submits the IP and answers 202. Repeating it is safe and creates no second enrichment. A time-out or a ' +
    '503 does not prove that the submission failed: repeat the same POST.',
  requestBody: {
    required: true,
    content: {
      'application/json': { schema: lookupRequest, examples: { ipv4: { value: { ip: '8.8.8.8' } } } },
    },
  },
  responses: {
    ...answers,
  },
  codes: [...sharedCodes, ...bodyCodes, 'pending_limit', 'enrichment_limit', 'enrichment_capacity'],
});

/** GET /v1/lookup */
export const getLookupOperation = operation('readLookup', {
  summary: 'Read a saved result or poll a submitted IP',
  description:
    'Never starts enrichment or a refresh. 404 `not_requested` means that nothing is saved or submitted, not ' +
    'that there is no company. While polling, wait at least `Retry-After` seconds.',
  requestParams: { query: z.object({ ip: lookupIp }) },
  responses: answers,
  codes: [...sharedCodes, 'not_requested'],
});
