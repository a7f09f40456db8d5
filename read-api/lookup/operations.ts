import { z } from 'zod';
import type { ZodOpenApiOperationObject } from 'zod-openapi';
import { bodyCodes, jsonResponse, keyedCodes, refusalResponses } from '../../http/contract/responses.ts';
import {
  type LookupBody,
  lookupBody,
  lookupIp,
  lookupRequest,
  type PendingBody,
  pendingBody,
} from './schemas.ts';

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
  request_id: '6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11',
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
  request_id: '6f2f1d1e-5a52-4b7e-9f0b-2a4c3c1d7e11',
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
export const postLookupOperation: ZodOpenApiOperationObject = {
  operationId: 'requestLookup',
  tags: ['Lookup'],
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
    ...refusalResponses([
      ...sharedCodes,
      ...bodyCodes,
      'pending_limit',
      'enrichment_limit',
      'enrichment_capacity',
    ]),
  },
};

/** GET /v1/lookup */
export const getLookupOperation: ZodOpenApiOperationObject = {
  operationId: 'readLookup',
  tags: ['Lookup'],
  summary: 'Read a saved result or poll a submitted IP',
  description:
    'Never starts enrichment or a refresh. 404 `not_requested` means that nothing is saved or submitted, not ' +
    'that there is no company. While polling, wait at least `Retry-After` seconds.',
  requestParams: { query: z.object({ ip: lookupIp }) },
  responses: { ...answers, ...refusalResponses([...sharedCodes, 'not_requested']) },
};
