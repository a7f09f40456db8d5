import { accept, type Decider, refuse, unreachable } from '../kernel/decider.ts';
import { isoTime } from '../kernel/time.ts';
import { type KeyLimits, PARTNER_PREFIX, type PartnerEvent } from './events.ts';

export interface Key {
  readonly name: string;
  readonly limits: KeyLimits;
  readonly revoked: boolean;
}

export interface Partner {
  readonly name: string | null;
  readonly keys: Readonly<Record<string, Key>>;
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

const nameIsTaken = (state: Partner, name: string): boolean =>
  Object.values(state.keys).some((key) => key.name === name && !key.revoked);

const updateKey = (command: Extract<PartnerCommand, { type: 'UpdateKey' }>, state: Partner) => {
  const { partner_id, key_id, limits, at } = command;
  const key = state.keys[key_id];
  if (!key) return refuse<PartnerRefusal>('key_not_found');
  if (key.revoked) return refuse<PartnerRefusal>('key_revoked');
  const next = { ...key.limits, ...limits };
  const same = (Object.keys(next) as (keyof KeyLimits)[]).every((name) => next[name] === key.limits[name]);
  if (same) return accept<PartnerEvent[]>([]);
  return accept<PartnerEvent[]>([
    { type: 'partners.KeyUpdated.v1', data: { ...next, partner_id, key_id, updated_at: isoTime(at) } },
  ]);
};

export const partner: Decider<Partner, PartnerCommand, PartnerEvent, PartnerRefusal> = {
  initial: { name: null, keys: {} },

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
        const key = state.keys[key_id];
        if (key) return key.revoked ? refuse('key_revoked') : accept([]);
        if (nameIsTaken(state, name)) return refuse('key_name_taken');
        const data = { ...limits, partner_id, key_id, name, hash, created_at: isoTime(at) };
        return accept([{ type: 'partners.KeyCreated.v1', data }]);
      }
      case 'UpdateKey':
        return updateKey(command, state);
      case 'RevokeKey': {
        const { key_id } = command;
        const key = state.keys[key_id];
        if (!key) return refuse('key_not_found');
        if (key.revoked) return accept([]);
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
        return withKey(state, data.key_id, { name: data.name, limits: limitsOf(data), revoked: false });
      case 'partners.KeyUpdated.v1':
        return changeKey(state, data.key_id, { limits: limitsOf(data) });
      case 'partners.KeyRevoked.v1':
        return changeKey(state, data.key_id, { revoked: true });
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

const withKey = (state: Partner, keyId: string, key: Key): Partner => ({
  ...state,
  keys: { ...state.keys, [keyId]: key },
});

const changeKey = (state: Partner, keyId: string, change: Partial<Key>): Partner => {
  const key = state.keys[keyId];
  return key ? withKey(state, keyId, { ...key, ...change }) : state;
};

export const partnerStream = (partnerId: string): string => `${PARTNER_PREFIX}${partnerId}`;
