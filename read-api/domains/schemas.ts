import { z } from 'zod';
import { bodyCodes, keyedCodes } from '../../http/contract/responses.ts';
import type { PartnerRequest, Reply } from '../../http/contract/route.ts';
import { requestId, timestamp } from '../../http/contract/schemas/common.ts';
import { deletedResponse, jsonBody, operationsOf, REQUEST, storableJson } from '../operation.ts';
import { snippetOf } from '../trackers/schemas.ts';

const operation = operationsOf('Custom domains');

const hostname = z.string().meta({
  description: 'Lower case, IDNs as punycode, at least two labels, no trailing dot; no address.',
  example: 'visits.example.com',
});

const domainBody = z
  .object({
    id: z.uuid(),
    tracker_id: z.uuid(),
    hostname,
    cname_target: z.string().meta({
      description: "What the host name's CNAME, or the last of a chain of them, must name.",
      example: 'doorplate.example',
    }),
    verification: z
      .object({ type: z.literal('TXT'), name: z.string(), value: z.string() })
      .nullable()
      .meta({
        description:
          'The DNS record that shows that the name is yours: another partner claims it too, or had it. With it in ' +
          'place the name becomes active once its CNAME is right. null: the CNAME is enough.',
      }),
    status: z.enum(['pending', 'active', 'failed']).meta({
      description:
        '`pending`: looked for until it points here, for at most 7 days. `active`: it collects. `failed`: it did not ' +
        'point here in time, or no longer does for 3 days; POST it again.',
    }),
    created_at: timestamp,
    activated_at: timestamp.nullable(),
    checked_at: timestamp.nullable().meta({ description: 'When it was last looked for.' }),
    last_error: z
      .string()
      .nullable()
      .meta({
        description:
          'Why it does not point here: `no_such_name`, `no_cname`, `points_elsewhere`, `cname_loop`, ' +
          '`cname_too_long`, `dns_timeout`, `dns_error`; `not_verified`: the CNAME is right and the TXT record of ' +
          '`verification` is missing; `claimed_elsewhere`: another partner showed that the name is its own; null: it does, or nobody has looked yet.',
      }),
    snippet: z
      .string()
      .nullable()
      .meta({ description: 'The script tag on this host; null until it is active.' }),
    request_id: requestId.optional(),
  })
  .meta({ id: 'CustomDomain', description: "A host name of a customer's own for a tracker's pixel." });
export type DomainBody = z.output<typeof domainBody>;

export const domainCreate = z.strictObject({ hostname }).meta({ id: 'CustomDomainCreate' });

/** At most ten, so that all are told at once. */
const domainList = z
  .object({ domains: z.array(domainBody), request_id: requestId })
  .meta({ id: 'CustomDomainList' });

const ID = '7d9b4c1e-0f5a-4b8e-9c63-1b2a3d4e5f60';
const TRACKER = '3c0f8f3e-62a1-4d0e-9b1a-7f0c2d4e5a61';

const pending: DomainBody = {
  id: ID,
  tracker_id: TRACKER,
  hostname: 'visits.example.com',
  cname_target: 'doorplate.example',
  verification: null,
  status: 'pending',
  created_at: '2026-03-14T09:26:53.589Z',
  activated_at: null,
  checked_at: null,
  last_error: null,
  snippet: null,
  request_id: REQUEST,
};
const active: DomainBody = {
  ...pending,
  status: 'active',
  activated_at: '2026-03-14T09:41:07.112Z',
  checked_at: '2026-03-15T09:41:08.020Z',
  snippet: `<script async src="https://visits.example.com/tracking/a.js?tracker_id=${TRACKER}" data-custom='{}'></script>`,
};

const ofTracker = z.object({ tracker_id: z.uuid().meta({ description: 'The tracker.' }) });
const ofDomain = ofTracker.extend({ domain_id: z.uuid().meta({ description: 'The domain.' }) });
const trackerCodes = ['invalid_tracker', 'invalid_query', 'tracker_not_found', 'tracker_deleted'] as const;

/** GET /v1/trackers/{tracker_id}/domains */
export const listDomainsOperation = operation('listDomains', {
  summary: 'All custom domains of a tracker',
  description: 'Pending, active and failed ones, at most 10.',
  requestParams: { path: ofTracker },
  responses: {
    '200': storableJson('The domains.', domainList, { one: { domains: [active], request_id: REQUEST } }),
  },
  codes: [...trackerCodes, ...keyedCodes],
});

/** POST /v1/trackers/{tracker_id}/domains */
export const createDomainOperation = operation('createDomain', {
  summary: 'Add a custom domain',
  description:
    "Make the host name a CNAME of `cname_target`; it becomes active by itself once it is. Repeating it is safe, and a failed domain's activation begins anew. Where `verification` names a TXT record, make that too: several partners may claim a name, and the record decides. A name that is active for another partner is `domain_taken` until the record, which the message names, is in place.",
  requestParams: { path: ofTracker },
  requestBody: jsonBody(domainCreate),
  responses: {
    '201': storableJson('The domain.', domainBody, { pending }),
  },
  codes: ['invalid_domain', ...trackerCodes, ...bodyCodes, ...keyedCodes, 'domain_taken', 'domain_limit'],
});

/** GET /v1/trackers/{tracker_id}/domains/{domain_id} */
export const getDomainOperation = operation('getDomain', {
  summary: 'One custom domain',
  description: 'Poll it until its `status` is `active`; one that was given up is unknown.',
  requestParams: { path: ofDomain },
  responses: {
    '200': storableJson('The domain.', domainBody, { active, pending }),
  },
  codes: [...trackerCodes, 'domain_not_found', ...keyedCodes],
});

/** DELETE /v1/trackers/{tracker_id}/domains/{domain_id} */
export const deleteDomainOperation = operation('deleteDomain', {
  summary: 'Give a custom domain up',
  description:
    'It stops collecting at once, and its name is free for any tracker. A repeat tells the original `deleted_at`.',
  requestParams: { path: ofDomain },
  responses: { '200': deletedResponse('CustomDomainDeleted', ID) },
  codes: [...trackerCodes, 'domain_not_found', ...bodyCodes, ...keyedCodes],
});

/** A domain, from the stream that it stands on or from the read model. */
export interface ShownDomain
  extends Readonly<Omit<DomainBody, 'id' | 'cname_target' | 'verification' | 'checked_at' | 'snippet'>> {
  readonly domain_id: string;
  readonly partner_id: string;
}

/** The token that a name's TXT record holds where it is a partner's. */
export type TokenOf = (hostname: string, partnerId: string) => string;

interface DomainSetup {
  /** What domains must point at. */
  readonly serviceHost: string;
  readonly tokenOf: TokenOf;
  /** Whether the CNAME alone does not make it active. */
  readonly needsProof: boolean;
}

/** The TXT record that shows that a name is a partner's. */
export const verificationOf = (hostname: string, partnerId: string, tokenOf: TokenOf) =>
  ({ type: 'TXT', name: `_doorplate.${hostname}`, value: tokenOf(hostname, partnerId) }) as const;

/** A domain as the API shows it. @param checkedAt time of its last DNS check (ISO 8601), which may be newer than the rest */
export const domainFields = (
  domain: ShownDomain,
  checkedAt: string | null,
  { serviceHost, tokenOf, needsProof }: DomainSetup,
): Omit<DomainBody, 'request_id'> => ({
  id: domain.domain_id,
  tracker_id: domain.tracker_id,
  hostname: domain.hostname,
  cname_target: serviceHost,
  verification: needsProof ? verificationOf(domain.hostname, domain.partner_id, tokenOf) : null,
  status: domain.status,
  created_at: domain.created_at,
  activated_at: domain.activated_at,
  // A check leaves an error or makes it active, so this one has had none yet.
  checked_at: domain.status === 'pending' && domain.last_error === null ? null : checkedAt,
  last_error: domain.last_error,
  // TLS for it is the edge's, so it is https whatever the service itself is.
  snippet: domain.status === 'active' ? snippetOf(`https://${domain.hostname}`, domain.tracker_id) : null,
});

export const domainAnswer = (
  request: PartnerRequest,
  status: 200 | 201,
  fields: Omit<DomainBody, 'request_id'>,
): Reply => ({ status, body: JSON.stringify({ ...fields, request_id: request.id }) });
