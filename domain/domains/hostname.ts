import { Map as PersistentMap, Set as PersistentSet } from 'immutable';
import { parseAddress } from '../kernel/address.ts';
import { accept, type Decider, refuse, unreachable } from '../kernel/decider.ts';
import { DAY, HOUR, isAhead, isoTime, notAhead } from '../kernel/time.ts';
import { DOMAIN_PREFIX, type DomainEvent } from './events.ts';

/** A label for which certificates are issued, so without the underscore that origins may have. */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const MAX_LENGTH = 253;

/**
 * Returns whether a host name may become a custom domain: at least two labels, lower case, IDNs as punycode, no address, no
 * trailing dot. Other spellings are rejected, not normalized, as with origins. Nor can it be one of the service's own names or a
 * name below one: under an active custom domain all partners find the pixel alone.
 * @param ownHosts the service's own host names
 */
export const isDomainName = (text: string, ownHosts: readonly string[]): boolean =>
  isHostname(text) && !ownHosts.some((own) => text === own || text.endsWith(`.${own}`));

/** Does the same for any host name, including the service's own. */
export function isHostname(text: string): boolean {
  if (text.length > MAX_LENGTH || !text.includes('.') || !text.split('.').every(isLabel)) return false;
  // Rejects `1.2.3.4`, and what browsers parse as an address, such as `1.2.0x3`.
  return parseAddress(text) === null && URL.parse(`https://${text}`)?.hostname === text;
}

const isLabel = (label: string): boolean => LABEL.test(label);

/** Normalizes a name from DNS for comparison: lower case, no trailing dot. */
export const plainName = (name: string): string => name.toLowerCase().replace(/\.$/, '');

/** The claims of a host name. One file, because commands, decisions and fold of an aggregate are read together. */

type DomainStatus = 'pending' | 'active' | 'failed';

/** A tracker's claim of a host name. Instants in ISO 8601. */
export interface Domain {
  readonly domain_id: string;
  readonly hostname: string;
  readonly tracker_id: string;
  readonly partner_id: string;
  readonly status: DomainStatus;
  readonly created_at: string;
  /** Start of the latest activation. */
  readonly claimed_at: string;
  readonly activated_at: string | null;
  /** Error of the last check with a new result; null: it points to the service, or was not checked yet. */
  readonly last_error: string | null;
  /** Time since which every check of an active domain has failed. */
  readonly missed_since: string | null;
  /** Time of the last event; results of earlier checks are ignored. */
  readonly changed_at: string;
}

/** The claims and former owners of a host name. At most one claim is active. */
export interface Name {
  readonly claims: PersistentMap<string, Domain>;
  /** Partners that it was ever active for. */
  readonly owners: PersistentSet<string>;
}

interface OfDomain {
  readonly domain_id: string;
  readonly hostname: string;
  readonly at: number;
}

export type DomainCommand =
  /** `proven`: the TXT record holds the partner's token. */
  | (OfDomain & {
      readonly type: 'Claim';
      readonly tracker_id: string;
      readonly partner_id: string;
      readonly proven: boolean;
    })
  /** `at`: start of the check. `error`: why the name does not point to the service; null if it does. */
  | (OfDomain & { readonly type: 'RecordCheck'; readonly error: string | null; readonly proven: boolean })
  | (OfDomain & { readonly type: 'Release' });

/** `domain_active_elsewhere`: it is active for another partner, and a TXT record would prove the caller's ownership. */
export type DomainRefusal = 'domain_taken' | 'domain_active_elsewhere';

/** Contract, Custom domains 2. */
const GIVES_UP = 7 * DAY;
const MAY_MISS = 3 * DAY;

const SOONEST = 5_000;
const SLOWEST = HOUR;

/** `last_error` of a claim with a correct CNAME but without its TXT record. */
const NOT_VERIFIED = 'not_verified';
/** `last_error` of the claim that lost the name. */
const CLAIMED_ELSEWHERE = 'claimed_elsewhere';

/** Returns whether the CNAME is not sufficient proof for this partner (contract, Custom domains 1). */
export const needsProof = ({ claims, owners }: Name, partnerId: string): boolean =>
  owners.some((owner) => owner !== partnerId) ||
  claims.some(({ partner_id, status }) => partner_id !== partnerId && status !== 'failed');

interface Claimant {
  readonly tracker_id: string;
  readonly partner_id: string;
}

/** Returns why a tracker cannot claim the name; null if it can. */
export function claimRefusal({ claims }: Name, { tracker_id, partner_id }: Claimant): DomainRefusal | null {
  const ofPartner = claims.find((one) => one.partner_id === partner_id);
  if (ofPartner && ofPartner.tracker_id !== tracker_id) return 'domain_taken';
  const active = claims.find(({ status }) => status === 'active');
  return active && active.partner_id !== partner_id ? 'domain_active_elsewhere' : null;
}

function claim(command: Extract<DomainCommand, { type: 'Claim' }>, name: Name) {
  const { domain_id, hostname, tracker_id, partner_id, proven, at } = command;
  const mine = name.claims.get(domain_id);
  if (mine && mine.status !== 'failed') return accept<DomainEvent[]>([]);
  const sibling = name.claims.some((one) => one.partner_id === partner_id && one.domain_id !== domain_id);
  if (sibling) return refuse<DomainRefusal>('domain_taken');
  const refused = claimRefusal(name, command);
  if (refused !== null && !(refused === 'domain_active_elsewhere' && proven)) return refuse(refused);
  const data = { domain_id, hostname, tracker_id, partner_id, claimed_at: isoTime(at) };
  return accept<DomainEvent[]>([{ type: 'domains.DomainClaimed.v1', data }]);
}

const activate = (name: Name, { domain_id, hostname }: OfDomain, at: string): DomainEvent[] => [
  ...[...name.claims.values()]
    .filter((other) => other.status === 'active' && other.domain_id !== domain_id)
    .map(
      (other): DomainEvent => ({
        type: 'domains.DomainFailed.v1',
        data: { domain_id: other.domain_id, hostname, error: CLAIMED_ELSEWHERE, failed_at: at },
      }),
    ),
  { type: 'domains.DomainActivated.v1', data: { domain_id, hostname, activated_at: at } },
];

function check(
  command: Extract<DomainCommand, { type: 'RecordCheck' }>,
  name: Name,
  mine: Domain,
): DomainEvent[] {
  const { domain_id, hostname, proven, at } = command;
  const ids = { domain_id, hostname };
  if (mine.status === 'failed' || at < notAhead(Date.parse(mine.changed_at), at)) return [];
  const isPending = mine.status === 'pending';
  const unproven = isPending && !proven && needsProof(name, mine.partner_id);
  const error = command.error ?? (unproven ? NOT_VERIFIED : null);
  if (error === null && isPending) return activate(name, command, isoTime(at));
  if (error !== null && at >= endsAt(mine)) {
    return [{ type: 'domains.DomainFailed.v1', data: { ...ids, error, failed_at: isoTime(at) } }];
  }
  // An event with the correct time replaces timestamps from a fast clock.
  if (error === mine.last_error && !isDomainAhead(mine, at)) return [];
  return [{ type: 'domains.DomainLookChanged.v1', data: { ...ids, error, looked_at: isoTime(at) } }];
}

/** Returns whether timestamps of the claim, from a fast clock, lie ahead of `at` (milliseconds). */
const isDomainAhead = ({ claimed_at, missed_since, changed_at }: Domain, at: number): boolean =>
  [claimed_at, missed_since, changed_at].some((time) => time !== null && isAhead(Date.parse(time), at));

/** Returns when the claim fails if checks keep failing, milliseconds; infinity while it points to the service. */
function endsAt({ status, claimed_at, missed_since }: Domain): number {
  if (status === 'pending') return Date.parse(claimed_at) + GIVES_UP;
  return missed_since === null ? Number.POSITIVE_INFINITY : Date.parse(missed_since) + MAY_MISS;
}

/** Decides the claims of a host name, of which at most one is active. */
export const domainDecider: Decider<Name, DomainCommand, DomainEvent, DomainRefusal> = {
  initial: { claims: PersistentMap(), owners: PersistentSet() },

  decide(command, name) {
    const { domain_id, hostname, at } = command;
    if (command.type === 'Claim') return claim(command, name);
    const mine = name.claims.get(domain_id);
    if (!mine) return accept([]);
    switch (command.type) {
      case 'RecordCheck':
        return accept(check(command, name, mine));
      case 'Release': {
        const data = { domain_id, hostname, tracker_id: mine.tracker_id, released_at: isoTime(at) };
        return accept([{ type: 'domains.DomainReleased.v1', data }]);
      }
      default:
        return unreachable(command);
    }
  },

  evolve(name, { type, data }) {
    switch (type) {
      case 'domains.DomainClaimed.v1': {
        const { domain_id } = data;
        return { ...name, claims: name.claims.set(domain_id, claimed(name.claims.get(domain_id), data)) };
      }
      case 'domains.DomainLookChanged.v1': {
        const { error, looked_at } = data;
        return change(name, data.domain_id, ({ status, claimed_at, missed_since }) => {
          const missed = status === 'active' && error !== null;
          return {
            claimed_at: notAfter(claimed_at, looked_at),
            last_error: error,
            missed_since: missed ? notAfter(missed_since ?? looked_at, looked_at) : null,
            changed_at: looked_at,
          };
        });
      }
      case 'domains.DomainActivated.v1': {
        const { activated_at, domain_id } = data;
        const partner = name.claims.get(domain_id)?.partner_id;
        return {
          ...change(name, domain_id, ({ claimed_at }) => ({
            status: 'active',
            claimed_at: notAfter(claimed_at, activated_at),
            activated_at,
            last_error: null,
            changed_at: activated_at,
          })),
          owners: partner === undefined ? name.owners : name.owners.add(partner),
        };
      }
      case 'domains.DomainFailed.v1': {
        const { error, failed_at } = data;
        return change(name, data.domain_id, () => ({
          status: 'failed',
          last_error: error,
          missed_since: null,
          changed_at: failed_at,
        }));
      }
      case 'domains.DomainReleased.v1':
        return { ...name, claims: name.claims.delete(data.domain_id) };
      case 'domains.NameSnapshotted.v1':
        return {
          claims: PersistentMap(data.claims.map((one) => [one.domain_id, one])),
          owners: PersistentSet(data.owners),
        };
      default:
        return unreachable(type);
    }
  },
};

/** Returns `time`, or `later` if `time` is from a fast clock. ISO 8601. */
const notAfter = (time: string, later: string): string =>
  isAhead(Date.parse(time), Date.parse(later)) ? later : time;

function change(name: Name, domainId: string, over: (of: Domain) => Partial<Domain>): Name {
  const mine = name.claims.get(domainId);
  return mine ? { ...name, claims: name.claims.set(domainId, { ...mine, ...over(mine) }) } : name;
}

/** Makes a snapshot event of the state. */
export const snapshotName = ({ claims, owners }: Name): DomainEvent => ({
  type: 'domains.NameSnapshotted.v1',
  data: { claims: [...claims.values()], owners: [...owners] },
});

const claimed = (
  before: Domain | undefined,
  { claimed_at, ...ids }: Extract<DomainEvent, { type: 'domains.DomainClaimed.v1' }>['data'],
): Domain => ({
  ...ids,
  status: 'pending',
  created_at: before?.created_at ?? claimed_at,
  claimed_at,
  activated_at: null,
  last_error: null,
  missed_since: null,
  changed_at: claimed_at,
});

/**
 * Returns the time of the next check after one at `at`, in milliseconds; null: none. Soon after the claim, then less often
 * down to hourly; daily once active, and hourly while an active domain does not point to the service.
 */
export function nextCheck(name: Domain, at: number): number | null {
  if (name.status === 'failed') return null;
  if (name.status === 'active' && name.missed_since === null) return at + DAY;
  const age = at - Date.parse(name.claimed_at);
  const wait = name.status === 'active' ? SLOWEST : Math.min(SLOWEST, Math.max(SOONEST, age / 10));
  // Not after the deadline, so that a failure is recorded in time.
  return Math.max(at + SOONEST, Math.min(at + wait, endsAt(name)));
}

export const domainStream = (hostname: string): string => `${DOMAIN_PREFIX}${hostname}`;
