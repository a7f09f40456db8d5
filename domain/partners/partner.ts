import { Map as PersistentMap, Set as PersistentSet } from 'immutable';
import { accept, type Decider, refuse, unreachable } from '../kernel/decider.ts';
import { isoTime } from '../kernel/time.ts';
import { type KeyLimits, PARTNER_PREFIX, type PartnerEvent } from './events.ts';

export interface Key {
  readonly name: string;
  readonly limits: KeyLimits;
}

export interface Partner {
  /** null: there is no such partner. */
  readonly name: string | null;
  /** By id; without revoked ones. */
  readonly keys: PersistentMap<string, Key>;
  /** Names of `keys`. */
  readonly keyNames: PersistentSet<string>;
  /** Ids of revoked keys. */
  readonly revoked: PersistentSet<string>;
}

export type PartnerCommand =
  | {
      readonly type: 'CreatePartner';
      readonly partner_id: string;
      readonly name: string;
      readonly at: number;
    }
  | {
      readonly type: 'CreateKey';
      readonly partner_id: string;
      readonly key_id: string;
      readonly name: string;
      readonly hash: string;
      readonly limits: KeyLimits;
      readonly at: number;
    }
  | {
      readonly type: 'UpdateKey';
      readonly partner_id: string;
      readonly key_id: string;
      readonly limits: Partial<KeyLimits>;
      readonly at: number;
    }
  | { readonly type: 'RevokeKey'; readonly partner_id: string; readonly key_id: string; readonly at: number };

export type PartnerRefusal =
  | 'invalid_name'
  | 'partner_exists'
  | 'partner_not_found'
  | 'key_name_taken'
  | 'key_not_found'
  | 'key_revoked';

/** 1-100 characters, nothing invisible at either end, no control characters. */
export const nameIsValid = (name: string): boolean => {
  const length = [...name].length;
  return name === name.trim() && length >= 1 && length <= 100 && !/\p{Cc}|\p{Cs}/u.test(name);
};

const updateKey = (command: Extract<PartnerCommand, { type: 'UpdateKey' }>, state: Partner) => {
  const { partner_id, key_id, limits, at } = command;
  if (state.revoked.has(key_id)) return refuse<PartnerRefusal>('key_revoked');
  const key = state.keys.get(key_id);
  if (!key) return refuse<PartnerRefusal>('key_not_found');
  const next = { ...key.limits, ...limits };
  const same = (Object.keys(next) as (keyof KeyLimits)[]).every((name) => next[name] === key.limits[name]);
  if (same) return accept<PartnerEvent[]>([]);
  return accept<PartnerEvent[]>([
    { type: 'partners.KeyUpdated.v1', data: { ...next, partner_id, key_id, updated_at: isoTime(at) } },
  ]);
};

export const partner: Decider<Partner, PartnerCommand, PartnerEvent, PartnerRefusal> = {
  initial: { name: null, keys: PersistentMap(), keyNames: PersistentSet(), revoked: PersistentSet() },

  decide(command, state) {
    const { partner_id, at } = command;
    if (command.type !== 'CreatePartner' && state.name === null) return refuse('partner_not_found');
    switch (command.type) {
      case 'CreatePartner': {
        const { name } = command;
        if (!nameIsValid(name)) return refuse('invalid_name');
        if (state.name !== null) return refuse('partner_exists');
        return accept([
          { type: 'partners.PartnerCreated.v1', data: { partner_id, name, created_at: isoTime(at) } },
        ]);
      }
      case 'CreateKey': {
        const { key_id, name, hash, limits } = command;
        if (!nameIsValid(name)) return refuse('invalid_name');
        if (state.revoked.has(key_id)) return refuse('key_revoked');
        if (state.keys.has(key_id)) return accept([]);
        if (state.keyNames.has(name)) return refuse('key_name_taken');
        const data = { ...limits, partner_id, key_id, name, hash, created_at: isoTime(at) };
        return accept([{ type: 'partners.KeyCreated.v1', data }]);
      }
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
      default:
        return unreachable(command);
    }
  },

  evolve(state, { type, data }) {
    switch (type) {
      case 'partners.PartnerCreated.v1':
        return { ...state, name: data.name };
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
        return {
          ...state,
          keys: state.keys.delete(data.key_id),
          keyNames: key ? state.keyNames.delete(key.name) : state.keyNames,
          revoked: state.revoked.add(data.key_id),
        };
      }
      case 'partners.PartnerSnapshotted.v1':
        return {
          name: data.name,
          keys: PersistentMap(
            data.keys.map((key) => [key.key_id, { name: key.name, limits: limitsOf(key) }]),
          ),
          keyNames: PersistentSet(data.keys.map(({ name }) => name)),
          revoked: PersistentSet(data.revoked),
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

/** Writes the fold of an existing partner down as an event. */
export const snapshotPartner = (state: Partner): PartnerEvent => ({
  type: 'partners.PartnerSnapshotted.v1',
  data: {
    name: state.name ?? '',
    keys: [...state.keys].map(([key_id, { name, limits }]) => ({ ...limits, key_id, name })),
    revoked: [...state.revoked],
  },
});

export const partnerStream = (partnerId: string): string => `${PARTNER_PREFIX}${partnerId}`;
