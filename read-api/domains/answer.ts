import { MANAGEMENT_BODY_LIMIT } from '../../http/contract/parameters.ts';
import type { PartnerRequest, PartnerRoute, Reply } from '../../http/contract/route.ts';
import { snippetOf } from '../snippet.ts';
import type { DomainBody } from './schemas.ts';

/** What all routes under /v1/trackers/{tracker_id}/domains share. */
export const DOMAIN_ROUTE = {
  access: 'partner',
  bodyLimit: MANAGEMENT_BODY_LIMIT,
} as const satisfies Partial<PartnerRoute>;

/** A domain, from the stream that it stands on or from the read model. */
export interface ShownDomain {
  readonly domain_id: string;
  readonly tracker_id: string;
  readonly partner_id: string;
  readonly hostname: string;
  readonly status: DomainBody['status'];
  readonly created_at: string;
  readonly activated_at: string | null;
  readonly last_error: string | null;
}

/** The token that a name's TXT record holds where it is a partner's. */
export type TokenOf = (hostname: string, partnerId: string) => string;

export interface DomainSetup {
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
