import type { ClaimRefusal, DomainCommands, TrackerName } from '../../commands/domains/manage-domains.ts';
import type { Position } from '../../event-store/port.ts';
import { fieldNamesOf, MANAGEMENT_BODY_LIMIT, uuidParam } from '../../http/contract/parameters.ts';
import { partnerRoutes } from '../../http/contract/partner-routes.ts';
import {
  commandContext,
  type PartnerRequest,
  type PartnerRoute,
  type Reply,
} from '../../http/contract/route.ts';
import { refusal } from '../../http/errors/error-catalog.ts';
import { isCnameTarget } from '../../http/server/own-host.ts';
import {
  createDomainOperation,
  deleteDomainOperation,
  domainAnswer,
  domainCreate,
  domainFields,
  type TokenOf,
  verificationOf,
} from '../../read-api/domains/schemas.ts';

export interface DomainRouteDeps {
  readonly commands: DomainCommands;
  /** What domains must point at. */
  readonly serviceHost: string;
  /** The token of a partner for a name. */
  readonly tokenOf: TokenOf;
  /** Waits until the read models have all that the store has now, or a time limit is over. */
  readonly waitForHead: () => Promise<boolean>;
  /** Resolves when the read models have the position, or a short time is over. */
  readonly projected: (position: Position | null) => Promise<unknown>;
  /** Called with a released name, once the read models have it. */
  readonly changed: (hostname: string) => void;
  /** Returns the time of a domain's last DNS check (ISO 8601). */
  readonly checkedAt: (domainId: string) => Promise<string | null>;
}

/** POST and DELETE: all that changes a custom domain. */
export function domainRoutes(deps: DomainRouteDeps): PartnerRoute[] {
  const route = partnerRoutes(deps, { bodyLimit: MANAGEMENT_BODY_LIMIT, budget: 'changes' });
  return [
    route('POST', '/v1/trackers/:tracker_id/domains', 'json', createDomainOperation, create),
    route('DELETE', '/v1/trackers/:tracker_id/domains/:domain_id', 'none', deleteDomainOperation, remove),
  ];
}

const shape = fieldNamesOf(domainCreate);

async function create(deps: DomainRouteDeps, request: PartnerRequest): Promise<Reply> {
  if (request.query !== '') return refusal(request, 'invalid_query');
  const body = shape.safeParse(request.body);
  if (!body.success) return refusal(request, 'invalid_body');
  const tracker = trackerOf(request);
  if (tracker === null) return refusal(request, 'invalid_tracker');
  const { hostname } = body.data;
  if (typeof hostname !== 'string') return refusal(request, 'invalid_domain');
  if (!isCnameTarget(deps.serviceHost)) {
    return refusal(request, 'invalid_domain', {
      message: `A custom domain is a CNAME record, which cannot point at ${deps.serviceHost}: the operator has to set PUBLIC_URL to a host name first.`,
    });
  }
  const claimed = await deps.commands.claim(tracker, hostname, commandContext(request));
  if (!claimed.ok) return claimRefused(deps, request, claimed.refusal, hostname);
  const { domain, needsProof, position } = claimed.value;
  // So that the caller's next list, on whichever node, shows it; it stands whether or not that can be waited for.
  // What is shown as active collects in every process: they all read the read model.
  const shown = domain.status === 'active' ? deps.waitForHead() : deps.projected(position);
  await shown.catch(() => undefined);
  const checkedAt = await deps.checkedAt(domain.domain_id).catch(() => null);
  // 201 for a repeat too: who did not get the first answer gets the same one.
  return domainAnswer(request, 201, domainFields(domain, checkedAt, { ...deps, needsProof }));
}

function claimRefused(
  { tokenOf }: DomainRouteDeps,
  request: PartnerRequest,
  code: ClaimRefusal,
  hostname: string,
): Reply {
  if (code !== 'domain_active_elsewhere') return refusal(request, code);
  const { partner_id } = request.caller;
  const { name, value } = verificationOf(hostname, partner_id, tokenOf);
  return refusal(request, 'domain_taken', {
    message: `The host name is active for another account. If it is yours, make the TXT record ${name} with the value ${value}, and repeat the request.`,
  });
}

async function remove(deps: DomainRouteDeps, request: PartnerRequest): Promise<Reply> {
  if (request.query !== '') return refusal(request, 'invalid_query');
  const tracker = trackerOf(request);
  if (tracker === null) return refusal(request, 'invalid_tracker');
  const id = uuidParam(request, 'domain_id');
  if (id === null) return refusal(request, 'domain_not_found');
  const released = await deps.commands.release(tracker, id, commandContext(request));
  if (!released.ok) return refusal(request, released.refusal);
  const { hostname, deleted_at, position } = released.value;
  // null: another process has given the name up, once it saw that the place was freed.
  const gone = position === null ? deps.waitForHead() : deps.projected(position);
  await gone.catch(() => undefined);
  deps.changed(hostname);
  return { status: 200, body: JSON.stringify({ id, deleted: true, deleted_at, request_id: request.id }) };
}

function trackerOf(request: PartnerRequest): TrackerName | null {
  const tracker_id = uuidParam(request, 'tracker_id');
  if (tracker_id === null) return null;
  return { tracker_id, partner_id: request.caller.partner_id };
}
