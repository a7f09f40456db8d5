import { uuidParam } from '../../http/contract/parameters.ts';
import type { PartnerRequest, PartnerRoute, Reply } from '../../http/contract/route.ts';
import { type ErrorCode, refusal } from '../../http/errors/error-catalog.ts';
import { type OpsHandler, sendJson } from '../../platform/telemetry/ops-server.ts';
import { type DomainReads, type DomainRow, findDomain, listDomains } from '../../queries/domains/domains.ts';
import type { TrackerDirectory } from '../../queries/trackers/directory.ts';
import { DOMAIN_ROUTE, domainAnswer, domainFields, type TokenOf } from './answer.ts';
import { getDomainOperation, listDomainsOperation } from './schemas.ts';

export interface DomainReadDeps extends DomainReads {
  readonly trackers: Pick<TrackerDirectory, 'find'>;
  readonly serviceHost: string;
  /** The token of a partner for a name. */
  readonly tokenOf: TokenOf;
}

/** GET of one tracker's domains, and of one of them. */
export const domainReadRoutes = (deps: DomainReadDeps): PartnerRoute[] => [
  {
    ...DOMAIN_ROUTE,
    method: 'GET',
    path: '/v1/trackers/:tracker_id/domains',
    body: 'none',
    operation: listDomainsOperation,
    handle: (request) => list(deps, request),
  },
  {
    ...DOMAIN_ROUTE,
    method: 'GET',
    path: '/v1/trackers/:tracker_id/domains/:domain_id',
    body: 'none',
    operation: getDomainOperation,
    handle: (request) => get(deps, request),
  },
];

const list = async (deps: DomainReadDeps, request: PartnerRequest): Promise<Reply> => {
  const tracker = await trackerOf(deps, request);
  if (typeof tracker === 'string') return refusal(request, tracker);
  const rows = await listDomains(deps.db, tracker.tracker_id);
  const domains = rows.map((row) => fields(row, deps));
  return { status: 200, body: JSON.stringify({ domains, request_id: request.id }) };
};

const get = async (deps: DomainReadDeps, request: PartnerRequest): Promise<Reply> => {
  const tracker = await trackerOf(deps, request);
  if (typeof tracker === 'string') return refusal(request, tracker);
  const domainId = uuidParam(request, 'domain_id');
  const row = domainId && (await findDomain(deps, tracker.tracker_id, domainId));
  return row ? domainAnswer(request, 200, fields(row, deps)) : refusal(request, 'domain_not_found');
};

const fields = (row: DomainRow, deps: DomainReadDeps) =>
  domainFields(row, row.checked_at, { ...deps, needsProof: row.needs_proof });

/** The path's tracker, or why it shows no domains. */
const trackerOf = async (
  { trackers }: DomainReadDeps,
  request: PartnerRequest,
): Promise<{ readonly tracker_id: string } | ErrorCode> => {
  if (request.query !== '') return 'invalid_query';
  const trackerId = uuidParam(request, 'tracker_id');
  if (trackerId === null) return 'invalid_tracker';
  const tracker = await trackers.find(trackerId);
  const { partner_id } = request.caller;
  if (tracker === null || tracker.partner_id !== partner_id) return 'tracker_not_found';
  return tracker.deleted ? 'tracker_deleted' : tracker;
};

/**
 * Handles GET /tls-allowed?domain=: tells the edge, on a name's first visit, whether to request a certificate: 200 for the
 * service's own name and active custom domains, otherwise 404, and 503 if that is unknown. Makes no DNS query.
 */
export const tlsAllowedHandler =
  (isOwn: (host: string) => boolean, mayHaveCertificate: (host: string) => Promise<boolean>): OpsHandler =>
  async (_request, response, { searchParams }) => {
    const [domain = '', ...more] = searchParams.getAll('domain').map((name) => name.toLowerCase());
    try {
      const allowed = more.length === 0 && (isOwn(domain) || (await mayHaveCertificate(domain)));
      sendJson(response, allowed ? 200 : 404, { allowed });
    } catch {
      sendJson(response, 503, { error: 'unavailable' });
    }
  };
