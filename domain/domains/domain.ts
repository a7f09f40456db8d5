import { accept, type Decider, refuse, unreachable } from '../kernel/decider.ts';
import { DAY, HOUR, isoTime } from '../kernel/time.ts';
import { DOMAIN_PREFIX, type DomainEvent } from './events.ts';

export type DomainStatus = 'pending' | 'active' | 'failed';

/** A host name that a tracker has. Instants in ISO 8601. */
export interface Domain {
  readonly domain_id: string;
  readonly hostname: string;
  readonly tracker_id: string;
  readonly partner_id: string;
  readonly status: DomainStatus;
  readonly created_at: string;
  /** When its activation began, for the last time. */
  readonly claimed_at: string;
  readonly activated_at: string | null;
  /** Why it does not point here, by the last look that told something new; null: it does, or nobody has looked. */
  readonly last_error: string | null;
  /** Since when each look at it, active as it is, has found that it does not point here. */
  readonly missed_since: string | null;
  /** Of the last event: what was seen before that is old news. */
  readonly changed_at: string;
}

/** null: the name is free. */
export type Name = Domain | null;

interface OfDomain {
  readonly domain_id: string;
  readonly hostname: string;
  readonly at: number;
}

export type DomainCommand =
  | (OfDomain & { readonly type: 'Claim'; readonly tracker_id: string; readonly partner_id: string })
  /** `at`: when the look began. `error`: why the name does not point here; null: it does. */
  | (OfDomain & { readonly type: 'Look'; readonly error: string | null })
  | (OfDomain & { readonly type: 'Release' });

export type DomainRefusal = 'domain_taken';

/** Decisions, Custom domains. */
const GIVES_UP = 7 * DAY;
const MAY_MISS = 3 * DAY;

const SOONEST = 5_000;
const SLOWEST = HOUR;

const claim = (command: Extract<DomainCommand, { type: 'Claim' }>, name: Name) => {
  const { domain_id, hostname, tracker_id, partner_id, at } = command;
  if (name !== null && name.domain_id !== domain_id) return refuse<DomainRefusal>('domain_taken');
  if (name !== null && name.status !== 'failed') return accept<DomainEvent[]>([]);
  const data = { domain_id, hostname, tracker_id, partner_id, claimed_at: isoTime(at) };
  return accept<DomainEvent[]>([{ type: 'domains.DomainClaimed.v1', data }]);
};

const look = (command: Extract<DomainCommand, { type: 'Look' }>, name: Domain): DomainEvent[] => {
  const { domain_id, hostname, error, at } = command;
  const ids = { domain_id, hostname };
  if (name.status === 'failed' || at < Date.parse(name.changed_at)) return [];
  if (error === null && name.status === 'pending') {
    return [{ type: 'domains.DomainActivated.v1', data: { ...ids, activated_at: isoTime(at) } }];
  }
  if (error !== null && at >= endsAt(name)) {
    return [{ type: 'domains.DomainFailed.v1', data: { ...ids, error, failed_at: isoTime(at) } }];
  }
  if (error === name.last_error) return [];
  return [{ type: 'domains.DomainLookChanged.v1', data: { ...ids, error, looked_at: isoTime(at) } }];
};

/** When it fails unless it points here by then, in milliseconds; infinity: it does, as far as is known. */
const endsAt = ({ status, claimed_at, missed_since }: Domain): number => {
  if (status === 'pending') return Date.parse(claimed_at) + GIVES_UP;
  return missed_since === null ? Number.POSITIVE_INFINITY : Date.parse(missed_since) + MAY_MISS;
};

/** A host name's owners, one at a time. */
export const domain: Decider<Name, DomainCommand, DomainEvent, DomainRefusal> = {
  initial: null,

  decide(command, name) {
    const { domain_id, hostname, at } = command;
    if (command.type === 'Claim') return claim(command, name);
    // Whoever had it before.
    if (name?.domain_id !== domain_id) return accept([]);
    switch (command.type) {
      case 'Look':
        return accept(look(command, name));
      case 'Release': {
        const data = { domain_id, hostname, tracker_id: name.tracker_id, released_at: isoTime(at) };
        return accept([{ type: 'domains.DomainReleased.v1', data }]);
      }
      default:
        return unreachable(command);
    }
  },

  evolve(name, { type, data }) {
    if (type === 'domains.DomainClaimed.v1') return claimed(name, data);
    if (name === null) return null;
    switch (type) {
      case 'domains.DomainLookChanged.v1': {
        const { error, looked_at } = data;
        const missed = name.status === 'active' && error !== null;
        const missed_since = missed ? (name.missed_since ?? looked_at) : null;
        return { ...name, last_error: error, missed_since, changed_at: looked_at };
      }
      case 'domains.DomainActivated.v1': {
        const { activated_at } = data;
        return { ...name, status: 'active', activated_at, last_error: null, changed_at: activated_at };
      }
      case 'domains.DomainFailed.v1': {
        const { error, failed_at } = data;
        return { ...name, status: 'failed', last_error: error, missed_since: null, changed_at: failed_at };
      }
      case 'domains.DomainReleased.v1':
        return null;
      default:
        return unreachable(type);
    }
  },
};

const claimed = (
  before: Name,
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
 * When to look again after a look at `at`, both in milliseconds; null: never. Soon after it was claimed, then ever more
 * slowly, down to hourly; daily once it is active, and hourly while it does not point here.
 */
export const nextLook = (name: Domain, at: number): number | null => {
  if (name.status === 'failed') return null;
  if (name.status === 'active' && name.missed_since === null) return at + DAY;
  const age = at - Date.parse(name.claimed_at);
  const wait = name.status === 'active' ? SLOWEST : Math.min(SLOWEST, Math.max(SOONEST, age / 10));
  // Not an hour late for the end.
  return Math.max(at + SOONEST, Math.min(at + wait, endsAt(name)));
};

export const domainStream = (hostname: string): string => `${DOMAIN_PREFIX}${hostname}`;
