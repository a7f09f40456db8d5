import { type DatabasePool, sql } from 'slonik';
import { z } from 'zod';
import { MANAGEMENT_BODY_LIMIT, uuidParam } from '../../http/contract/parameters.ts';
import { partnerRoutes } from '../../http/contract/partner-routes.ts';
import type { PartnerRequest, PartnerRoute, Reply } from '../../http/contract/route.ts';
import { type ErrorCode, refusal } from '../../http/errors/error-catalog.ts';
import { type OpsHandler, sendJson } from '../../platform/telemetry/ops-server.ts';
import { type Reads, readUpToDate } from '../../queries/reads.ts';
import type { TrackerDirectory } from '../../queries/trackers/directory.ts';
import {
  domainAnswer,
  domainFields,
  getDomainOperation,
  listDomainsOperation,
  type TokenOf,
} from './schemas.ts';

const domainRow = z.object({
  domain_id: z.string(),
  tracker_id: z.string(),
  partner_id: z.string(),
  hostname: z.string(),
  needs_proof: z.boolean(),
  status: z.enum(['pending', 'active', 'failed']),
  created_at: z.string(),
  activated_at: z.string().nullable(),
  checked_at: z.string().nullable(),
  last_error: z.string().nullable(),
});
type DomainRow = z.output<typeof domainRow>;

const rows = sql.fragment`
  select d.domain_id, d.tracker_id, d.partner_id, d.hostname, d.status, d.created_at, d.activated_at,
         l.looked_at as checked_at, d.last_error,
         d.status <> 'active' and (
           exists (select from read.domain o
                   where o.hostname = d.hostname and o.partner_id <> d.partner_id and o.status <> 'failed')
           or exists (select from read.domain_owner w
                      where w.hostname = d.hostname and w.partner_id <> d.partner_id)) as needs_proof
  from read.domain d left join work.domain_look l on l.domain_id = d.domain_id`;

/** A tracker's domains, failed ones too. */
const listDomains = (db: DatabasePool, trackerId: string): Promise<readonly DomainRow[]> =>
  db.any(sql.type(domainRow)`
    ${rows} where d.tracker_id = ${trackerId} order by d.created_at, d.domain_id`);

/** The domains of all trackers of a partner. */
export const listDomainsOfPartner = (db: DatabasePool, partnerId: string): Promise<readonly DomainRow[]> =>
  db.any(sql.type(domainRow)`
    ${rows} where d.partner_id = ${partnerId} order by d.hostname`);

/** Whether a partner has as many domains, failed ones too, as its ceiling allows. */
export const hasAllDomains = (db: DatabasePool, partnerId: string): Promise<boolean> =>
  db.oneFirst(sql.type(z.object({ is_full: z.boolean() }))`
    select count(*) >= coalesce((select p.domains from read.partner p where p.partner_id = ${partnerId}), 100)
      as is_full
    from read.domain where partner_id = ${partnerId}`);

const findDomain = (reads: Reads, trackerId: string, domainId: string): Promise<DomainRow | null> =>
  readUpToDate(reads, () =>
    reads.db.maybeOne(sql.type(domainRow)`
      ${rows} where d.domain_id = ${domainId} and d.tracker_id = ${trackerId}`),
  );

/** Returns the time of a domain's last DNS check (ISO 8601). */
export const readCheckedAt = (db: DatabasePool, domainId: string): Promise<string | null> =>
  db
    .maybeOne(sql.type(z.object({ looked_at: z.string().nullable() }))`
      select looked_at from work.domain_look where domain_id = ${domainId}`)
    .then((row) => row?.looked_at ?? null);

interface DomainReadDeps extends Reads {
  readonly trackers: Pick<TrackerDirectory, 'find'>;
  readonly serviceHost: string;
  /** The token of a partner for a name. */
  readonly tokenOf: TokenOf;
}

/** GET of one tracker's domains, and of one of them. */
export function domainReadRoutes(deps: DomainReadDeps): PartnerRoute[] {
  const route = partnerRoutes(deps, { bodyLimit: MANAGEMENT_BODY_LIMIT });
  return [
    route('GET', '/v1/trackers/:tracker_id/domains', 'none', listDomainsOperation, list),
    route('GET', '/v1/trackers/:tracker_id/domains/:domain_id', 'none', getDomainOperation, get),
  ];
}

async function list(deps: DomainReadDeps, request: PartnerRequest): Promise<Reply> {
  const tracker = await trackerOf(deps, request);
  if (typeof tracker === 'string') return refusal(request, tracker);
  const rows = await listDomains(deps.db, tracker.tracker_id);
  const domains = rows.map((row) => fields(row, deps));
  return { status: 200, body: JSON.stringify({ domains, request_id: request.id }) };
}

async function get(deps: DomainReadDeps, request: PartnerRequest): Promise<Reply> {
  const tracker = await trackerOf(deps, request);
  if (typeof tracker === 'string') return refusal(request, tracker);
  const domainId = uuidParam(request, 'domain_id');
  const row = domainId && (await findDomain(deps, tracker.tracker_id, domainId));
  return row ? domainAnswer(request, 200, fields(row, deps)) : refusal(request, 'domain_not_found');
}

const fields = (row: DomainRow, deps: DomainReadDeps) =>
  domainFields(row, row.checked_at, { ...deps, needsProof: row.needs_proof });

/** The path's tracker, or why it shows no domains. */
async function trackerOf(
  { trackers }: DomainReadDeps,
  request: PartnerRequest,
): Promise<{ readonly tracker_id: string } | ErrorCode> {
  if (request.query !== '') return 'invalid_query';
  const trackerId = uuidParam(request, 'tracker_id');
  if (trackerId === null) return 'invalid_tracker';
  const tracker = await trackers.find(trackerId);
  const { partner_id } = request.caller;
  if (tracker === null || tracker.partner_id !== partner_id) return 'tracker_not_found';
  return tracker.deleted ? 'tracker_deleted' : tracker;
}

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
