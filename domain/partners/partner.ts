import { Map as PersistentMap, OrderedSet as PersistentOrderedSet, Set as PersistentSet } from 'immutable';
import { accept, type Decider, refuse, unreachable } from '../kernel/decider.ts';
import { isoTime } from '../kernel/time.ts';
import {
  type Ceilings,
  DEFAULT_CEILINGS,
  type KeyLimits,
  PARTNER_PREFIX,
  type PartnerEvent,
  type PartnerState,
} from './events.ts';

/** The ceiling that a user's change of keys would exceed. */
type CeilingRefusal =
  | 'ceiling_requests_per_second'
  | 'ceiling_new_enrichments_per_day'
  | 'ceiling_pending_enrichments'
  | 'ceiling_company_signals'
  | 'ceiling_keys';

interface Capped {
  readonly ceilings: Ceilings;
  readonly keys: { readonly size: number; values(): Iterable<{ readonly limits: KeyLimits }> };
}

/** Keys that users may leave unrevoked, expired ones included, as a multiple of the ceiling: each takes part in every snapshot. */
const MAX_KEYS_TIMES = 10;

interface KeyChange {
  /** null: the key is new. */
  readonly from: KeyLimits | null;
  readonly to: KeyLimits;
  /** Milliseconds. */
  readonly at: number;
}

const isLive = ({ expires_at }: KeyLimits, at: number): boolean =>
  expires_at === null || Date.parse(expires_at) > at;

/**
 * Returns the first ceiling that a user's change would exceed, or null. Unchanged limits may exceed a ceiling, because the
 * operator has set them.
 */
function exceededCeiling({ ceilings, keys }: Capped, { from, to, at }: KeyChange): CeilingRefusal | null {
  const changes = (name: keyof KeyLimits): boolean => from?.[name] !== to[name];
  if (changes('requests_per_second') && to.requests_per_second > ceilings.requests_per_second) {
    return 'ceiling_requests_per_second';
  }
  const perDay = ceilings.new_enrichments_per_day;
  const wanted = to.new_enrichments_per_day ?? Number.POSITIVE_INFINITY;
  if (changes('new_enrichments_per_day') && perDay !== null && wanted > perDay) {
    return 'ceiling_new_enrichments_per_day';
  }
  if (changes('pending_enrichments') && to.pending_enrichments > ceilings.pending_enrichments) {
    return 'ceiling_pending_enrichments';
  }
  if (changes('company_signals') && to.company_signals && !ceilings.company_signals) {
    return 'ceiling_company_signals';
  }
  if (from === null && keys.size >= MAX_KEYS_TIMES * ceilings.keys) return 'ceiling_keys';
  const isOneMore = isLive(to, at) && !(from !== null && isLive(from, at));
  const live = () => [...keys.values()].filter(({ limits }) => isLive(limits, at)).length;
  return isOneMore && live() >= ceilings.keys ? 'ceiling_keys' : null;
}

/** What any limit may be at most. */
export const LARGEST_LIMIT = 1_000_000_000;

/** Default limits of a new key (contract, Lookup 10). */
export const DEFAULT_LIMITS: KeyLimits = {
  requests_per_second: 50,
  new_enrichments_per_day: null,
  pending_enrichments: 10_000,
  company_signals: false,
  expires_at: null,
};

interface Key {
  readonly name: string;
  readonly limits: KeyLimits;
}

export interface Partner {
  /** null: the partner does not exist. */
  readonly name: string | null;
  readonly state: PartnerState;
  readonly ceilings: Ceilings;
  /** By id, without revoked ones. */
  readonly keys: PersistentMap<string, Key>;
  readonly keyNames: PersistentSet<string>;
  /** Ids of recently revoked keys, the latest last. */
  readonly revoked: PersistentOrderedSet<string>;
}

const isDeleted = ({ state }: Partner): boolean => state === 'deleted' || state === 'ended';

/** Revoked keys that stay when there are twice as many, so that a snapshot holds them in one append. */
const REVOKED_REMEMBERED = 2_500;

/** The creator of a change; ceilings apply only to users. */
export type KeyManager = 'operator' | 'user';

interface OfPartner {
  readonly partner_id: string;
  readonly at: number;
}

export type StateChange = 'SuspendPartner' | 'ResumePartner' | 'DeletePartner' | 'EndPartner';

export type PartnerCommand =
  /** Omitted ceilings get their defaults. */
  | (OfPartner & {
      readonly type: 'CreatePartner';
      readonly name: string;
      readonly ceilings: Partial<Ceilings>;
    })
  /** Omitted ceilings stay. */
  | (OfPartner & { readonly type: 'SetCeilings'; readonly ceilings: Partial<Ceilings> })
  | (OfPartner & {
      readonly type: 'CreateKey';
      readonly key_id: string;
      readonly name: string;
      readonly hash: string;
      readonly limits: KeyLimits;
      readonly by: KeyManager;
    })
  | (OfPartner & {
      readonly type: 'UpdateKey';
      readonly key_id: string;
      readonly limits: Partial<KeyLimits>;
      readonly by: KeyManager;
    })
  | (OfPartner & { readonly type: 'RevokeKey'; readonly key_id: string })
  | (OfPartner & { readonly type: StateChange });

export type PartnerRefusal =
  | CeilingRefusal
  | 'invalid_name'
  | 'partner_exists'
  | 'partner_not_found'
  /** Its name is free for another partner. */
  | 'partner_deleted'
  | 'partner_not_deleted'
  | 'key_name_taken'
  | 'key_not_found'
  | 'key_revoked';

/** Returns whether a name has 1-100 characters, no outer white space and no control characters. */
export function nameIsValid(name: string): boolean {
  const length = [...name].length;
  return name === name.trim() && length >= 1 && length <= 100 && !/\p{Cc}|\p{Cs}/u.test(name);
}

const isSame = <T extends object>(one: T, other: T): boolean =>
  (Object.keys(one) as (keyof T)[]).every((name) => one[name] === other[name]);

const ceilingsSet = (partner_id: string, ceilings: Ceilings, at: number): PartnerEvent => ({
  type: 'partners.CeilingsSet.v1',
  data: { ...ceilings, partner_id, set_at: isoTime(at) },
});

function createPartner(
  { partner_id, name, ceilings, at }: Extract<PartnerCommand, { type: 'CreatePartner' }>,
  state: Partner,
) {
  if (!nameIsValid(name)) return refuse<PartnerRefusal>('invalid_name');
  if (state.name !== null)
    return refuse<PartnerRefusal>(isDeleted(state) ? 'partner_deleted' : 'partner_exists');
  const created: PartnerEvent = {
    type: 'partners.PartnerCreated.v1',
    data: { partner_id, name, created_at: isoTime(at) },
  };
  const wanted = { ...DEFAULT_CEILINGS, ...ceilings };
  return accept<PartnerEvent[]>(
    isSame(wanted, DEFAULT_CEILINGS) ? [created] : [created, ceilingsSet(partner_id, wanted, at)],
  );
}

function createKey(command: Extract<PartnerCommand, { type: 'CreateKey' }>, state: Partner) {
  const { partner_id, key_id, name, hash, limits, by, at } = command;
  if (!nameIsValid(name)) return refuse<PartnerRefusal>('invalid_name');
  if (state.revoked.has(key_id)) return refuse<PartnerRefusal>('key_revoked');
  if (state.keys.has(key_id)) return accept<PartnerEvent[]>([]);
  if (state.keyNames.has(name)) return refuse<PartnerRefusal>('key_name_taken');
  const exceeded = by === 'user' ? exceededCeiling(state, { from: null, to: limits, at }) : null;
  if (exceeded !== null) return refuse<PartnerRefusal>(exceeded);
  const data = { ...limits, partner_id, key_id, name, hash, created_at: isoTime(at) };
  return accept<PartnerEvent[]>([{ type: 'partners.KeyCreated.v1', data }]);
}

function updateKey(command: Extract<PartnerCommand, { type: 'UpdateKey' }>, state: Partner) {
  const { partner_id, key_id, limits, at } = command;
  if (state.revoked.has(key_id)) return refuse<PartnerRefusal>('key_revoked');
  const key = state.keys.get(key_id);
  if (!key) return refuse<PartnerRefusal>('key_not_found');
  const next = { ...key.limits, ...limits };
  if (isSame(next, key.limits)) return accept<PartnerEvent[]>([]);
  const exceeded = command.by === 'user' ? exceededCeiling(state, { from: key.limits, to: next, at }) : null;
  if (exceeded !== null) return refuse<PartnerRefusal>(exceeded);
  return accept<PartnerEvent[]>([
    { type: 'partners.KeyUpdated.v1', data: { ...next, partner_id, key_id, updated_at: isoTime(at) } },
  ]);
}

/** Decides how a partner that exists goes on. A repeat changes nothing; nothing brings a deleted partner back. */
function changeState(
  { type, partner_id, at }: OfPartner & { readonly type: StateChange },
  { state }: Partner,
) {
  const time = isoTime(at);
  switch (type) {
    case 'SuspendPartner':
      if (state === 'suspended') return accept<PartnerEvent[]>([]);
      return accept<PartnerEvent[]>([
        { type: 'partners.PartnerSuspended.v1', data: { partner_id, suspended_at: time } },
      ]);
    case 'ResumePartner':
      if (state === 'active') return accept<PartnerEvent[]>([]);
      return accept<PartnerEvent[]>([
        { type: 'partners.PartnerResumed.v1', data: { partner_id, resumed_at: time } },
      ]);
    case 'DeletePartner':
      if (state === 'deleted' || state === 'ended') return accept<PartnerEvent[]>([]);
      return accept<PartnerEvent[]>([
        { type: 'partners.PartnerDeleted.v1', data: { partner_id, deleted_at: time } },
      ]);
    case 'EndPartner':
      if (state === 'ended') return accept<PartnerEvent[]>([]);
      if (state !== 'deleted') return refuse<PartnerRefusal>('partner_not_deleted');
      return accept<PartnerEvent[]>([
        { type: 'partners.PartnerEnded.v1', data: { partner_id, ended_at: time } },
      ]);
    default:
      return unreachable(type);
  }
}

export const partnerDecider: Decider<Partner, PartnerCommand, PartnerEvent, PartnerRefusal> = {
  initial: {
    name: null,
    state: 'active',
    ceilings: DEFAULT_CEILINGS,
    keys: PersistentMap(),
    keyNames: PersistentSet(),
    revoked: PersistentOrderedSet(),
  },

  decide(command, state) {
    const { partner_id, at } = command;
    if (command.type !== 'CreatePartner' && state.name === null) return refuse('partner_not_found');
    const mayFollowDeletion = ['CreatePartner', 'DeletePartner', 'EndPartner'].includes(command.type);
    if (isDeleted(state) && !mayFollowDeletion) return refuse('partner_deleted');
    switch (command.type) {
      case 'CreatePartner':
        return createPartner(command, state);
      case 'SetCeilings': {
        const ceilings = { ...state.ceilings, ...command.ceilings };
        return accept(isSame(ceilings, state.ceilings) ? [] : [ceilingsSet(partner_id, ceilings, at)]);
      }
      case 'CreateKey':
        return createKey(command, state);
      case 'UpdateKey':
        return updateKey(command, state);
      case 'RevokeKey': {
        const { key_id } = command;
        if (state.revoked.has(key_id)) return accept([]);
        if (!state.keys.has(key_id)) return refuse('key_not_found');
        return accept([
          { type: 'partners.KeyRevoked.v1', data: { partner_id, key_id, revoked_at: isoTime(at) } },
        ]);
      }
      case 'SuspendPartner':
      case 'ResumePartner':
      case 'DeletePartner':
      case 'EndPartner':
        return changeState(command, state);
      default:
        return unreachable(command);
    }
  },

  evolve(state, { type, data }) {
    switch (type) {
      case 'partners.PartnerCreated.v1':
        return { ...state, name: data.name };
      case 'partners.CeilingsSet.v1': {
        const { partner_id: _, set_at: __, ...ceilings } = data;
        return { ...state, ceilings };
      }
      case 'partners.KeyCreated.v1':
        return {
          ...state,
          keys: state.keys.set(data.key_id, { name: data.name, limits: limitsOf(data) }),
          keyNames: state.keyNames.add(data.name),
        };
      case 'partners.KeyUpdated.v1':
        return {
          ...state,
          keys: state.keys.update(data.key_id, (key) => key && { ...key, limits: limitsOf(data) }),
        };
      case 'partners.KeyRevoked.v1': {
        const key = state.keys.get(data.key_id);
        const revoked = state.revoked.add(data.key_id);
        const isFull = revoked.size >= 2 * REVOKED_REMEMBERED;
        return {
          ...state,
          keys: state.keys.delete(data.key_id),
          keyNames: key ? state.keyNames.delete(key.name) : state.keyNames,
          revoked: isFull ? revoked.takeLast(REVOKED_REMEMBERED) : revoked,
        };
      }
      case 'partners.PartnerSuspended.v1':
        return { ...state, state: 'suspended' };
      case 'partners.PartnerResumed.v1':
        return { ...state, state: 'active' };
      case 'partners.PartnerDeleted.v1':
        return { ...state, state: 'deleted', keys: PersistentMap(), keyNames: PersistentSet() };
      case 'partners.PartnerEnded.v1':
        return { ...state, state: 'ended' };
      case 'partners.PartnerSnapshotted.v1':
        return {
          name: data.name,
          state: data.state,
          ceilings: data.ceilings,
          keys: PersistentMap(
            data.keys.map((key) => [key.key_id, { name: key.name, limits: limitsOf(key) }]),
          ),
          keyNames: PersistentSet(data.keys.map(({ name }) => name)),
          revoked: PersistentOrderedSet(data.revoked.slice(1 - 2 * REVOKED_REMEMBERED)),
        };
      default:
        return unreachable(type);
    }
  },
};

const limitsOf = (data: KeyLimits): KeyLimits => ({
  requests_per_second: data.requests_per_second,
  new_enrichments_per_day: data.new_enrichments_per_day,
  pending_enrichments: data.pending_enrichments,
  company_signals: data.company_signals,
  expires_at: data.expires_at,
});

/** Makes a snapshot event of an existing partner. */
export const snapshotPartner = (state: Partner): PartnerEvent => ({
  type: 'partners.PartnerSnapshotted.v1',
  data: {
    name: state.name ?? '',
    state: state.state,
    ceilings: state.ceilings,
    keys: [...state.keys].map(([key_id, { name, limits }]) => ({ ...limits, key_id, name })),
    revoked: [...state.revoked],
  },
});

export const partnerStream = (partnerId: string): string => `${PARTNER_PREFIX}${partnerId}`;
