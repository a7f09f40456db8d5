import { describe, expect, it, test } from 'vitest';
import {
  type Ceilings,
  DEFAULT_CEILINGS,
  type KeyLimits,
  type PartnerEvent,
} from '../../domain/partners/events.ts';
import {
  type PartnerRefusal,
  partnerDecider,
  type StateChange,
  snapshotPartner,
} from '../../domain/partners/partner.ts';
import { given } from '../domain/deciding.ts';
import { ANNA, AT } from '../lookup/lookup-events.ts';

const at = new Date(AT).toISOString();
const limits: KeyLimits = {
  requests_per_second: 50,
  new_enrichments_per_day: null,
  pending_enrichments: 10_000,
  company_signals: false,
  expires_at: null,
};
const created: PartnerEvent = {
  type: 'partners.PartnerCreated.v1',
  data: { partner_id: ANNA, name: 'acme', created_at: at },
};
const keyMade = (key_id: string, name: string): PartnerEvent => ({
  type: 'partners.KeyCreated.v1',
  data: { ...limits, partner_id: ANNA, key_id, name, hash: `hash of ${key_id}`, created_at: at },
});
const revoked = (key_id: string): PartnerEvent => ({
  type: 'partners.KeyRevoked.v1',
  data: { partner_id: ANNA, key_id, revoked_at: at },
});
const createKey = (key_id: string, name: string) =>
  ({
    type: 'CreateKey',
    partner_id: ANNA,
    key_id,
    name,
    hash: `hash of ${key_id}`,
    limits,
    by: 'operator',
    at: AT,
  }) as const;

describe('a partner', () => {
  const create = (name: string) =>
    ({ type: 'CreatePartner', partner_id: ANNA, name, ceilings: {}, at: AT }) as const;
  it('is created once', () => {
    const decision = partnerDecider.decide(create('acme'), partnerDecider.initial);
    given(partnerDecider, decision.ok ? decision.value : [])
      .when(create('acme'))
      .thenRefused('partner_exists');
  });
  it('has a name of 1 to 100 characters without control characters', () => {
    for (const name of ['', ' acme', 'a'.repeat(101), 'a\u0000b', '\ud800']) {
      given(partnerDecider, []).when(create(name)).thenRefused('invalid_name');
    }
  });
  it('has to exist before it has keys', () => {
    given(partnerDecider, []).when(createKey('k1', 'one')).thenRefused('partner_not_found');
  });
});

describe('a partner’s life', () => {
  const time = { suspended_at: at, resumed_at: at, deleted_at: at, ended_at: at };
  const change = (type: StateChange) => ({ type, partner_id: ANNA, at: AT }) as const;
  const changed = (type: 'Suspended' | 'Resumed' | 'Deleted' | 'Ended'): PartnerEvent => {
    const when = `${type.toLowerCase()}_at` as keyof typeof time;
    const data = { partner_id: ANNA, [when]: time[when] };
    return { type: `partners.Partner${type}.v1`, data } as PartnerEvent;
  };
  const history = (...types: Parameters<typeof changed>[0][]) =>
    given(partnerDecider, [created, keyMade('k1', 'one'), ...types.map(changed)]);

  it('may be suspended and resumed, each once', () => {
    history()
      .when(change('SuspendPartner'))
      .thenEvents([changed('Suspended')]);
    history('Suspended').when(change('SuspendPartner')).thenEvents([]);
    history('Suspended')
      .when(change('ResumePartner'))
      .thenEvents([changed('Resumed')]);
    history().when(change('ResumePartner')).thenEvents([]);
  });
  it('leaves a suspended partner its keys and lets the operator change them', () => {
    history('Suspended').when(createKey('k1', 'one')).thenEvents([]);
    history('Suspended')
      .when(createKey('k2', 'two'))
      .thenEvents([keyMade('k2', 'two')]);
  });
  it('ends with its deletion, which a suspended partner has too', () => {
    history()
      .when(change('DeletePartner'))
      .thenEvents([changed('Deleted')]);
    history('Suspended')
      .when(change('DeletePartner'))
      .thenEvents([changed('Deleted')]);
    history('Deleted').when(change('DeletePartner')).thenEvents([]);
    for (const command of [change('SuspendPartner'), change('ResumePartner'), createKey('k2', 'two')])
      history('Suspended', 'Deleted').when(command).thenRefused('partner_deleted');
    history('Deleted')
      .when(change('EndPartner'))
      .thenEvents([changed('Ended')]);
    history('Suspended').when(change('EndPartner')).thenRefused('partner_not_deleted');
  });
  it('is told apart from that of a partner who has the name afterwards', () => {
    const again = { type: 'CreatePartner', partner_id: ANNA, name: 'acme', ceilings: {}, at: AT } as const;
    history('Deleted').when(again).thenRefused('partner_deleted');
  });
  it('is in a snapshot', () => {
    const events = [created, keyMade('k1', 'one'), changed('Suspended')];
    const state = events.reduce(partnerDecider.evolve, partnerDecider.initial);
    given(partnerDecider, [snapshotPartner(state)])
      .when(change('SuspendPartner'))
      .thenEvents([]);
  });
});

describe('a key', () => {
  it('is created with its limits and its hash', () => {
    given(partnerDecider, [created])
      .when(createKey('k1', 'one'))
      .thenEvents([keyMade('k1', 'one')]);
  });
  it('has a name that no other active key of the partner has', () => {
    given(partnerDecider, [created, keyMade('k1', 'one')])
      .when(createKey('k2', 'one'))
      .thenRefused('key_name_taken');
    given(partnerDecider, [created, keyMade('k1', 'one'), revoked('k1')])
      .when(createKey('k2', 'one'))
      .thenEvents([keyMade('k2', 'one')]);
  });
  it('changes only in the given fields', () => {
    given(partnerDecider, [created, keyMade('k1', 'one')])
      .when({
        type: 'UpdateKey',
        partner_id: ANNA,
        key_id: 'k1',
        limits: { requests_per_second: 7 },
        by: 'operator',
        at: AT,
      })
      .thenEvents([
        {
          type: 'partners.KeyUpdated.v1',
          data: { ...limits, requests_per_second: 7, partner_id: ANNA, key_id: 'k1', updated_at: at },
        },
      ]);
  });
  it('is revoked once and for ever', () => {
    const revoke = { type: 'RevokeKey', partner_id: ANNA, key_id: 'k1', at: AT } as const;
    given(partnerDecider, [created, keyMade('k1', 'one')])
      .when(revoke)
      .thenEvents([revoked('k1')]);
    given(partnerDecider, [created, keyMade('k1', 'one'), revoked('k1')])
      .when({ type: 'UpdateKey', partner_id: ANNA, key_id: 'k1', limits: {}, by: 'operator', at: AT })
      .thenRefused('key_revoked');
    given(partnerDecider, [created]).when(revoke).thenRefused('key_not_found');
  });
});

describe('a ceiling', () => {
  const set = (over: Partial<Ceilings>): PartnerEvent => ({
    type: 'partners.CeilingsSet.v1',
    data: { ...DEFAULT_CEILINGS, ...over, partner_id: ANNA, set_at: at },
  });
  const setCeilings = (ceilings: Partial<Ceilings>) =>
    ({ type: 'SetCeilings', partner_id: ANNA, ceilings, at: AT }) as const;
  const byUser = (over: Partial<KeyLimits>, key_id = 'k9') =>
    ({ ...createKey(key_id, key_id), by: 'user', limits: { ...limits, ...over } }) as const;
  const updateByUser = (over: Partial<KeyLimits>) =>
    ({ type: 'UpdateKey', partner_id: ANNA, key_id: 'k1', limits: over, by: 'user', at: AT }) as const;
  const strong = (key_id: string, over: Partial<KeyLimits>): PartnerEvent => {
    const event = keyMade(key_id, key_id);
    return { ...event, data: { ...event.data, ...over } } as PartnerEvent;
  };

  it('is set with the partner and changed separately', () => {
    const create = {
      type: 'CreatePartner',
      partner_id: ANNA,
      name: 'acme',
      ceilings: { keys: 3 },
      at: AT,
    } as const;
    expect(partnerDecider.decide(create, partnerDecider.initial)).toEqual({
      ok: true,
      value: [created, set({ keys: 3 })],
    });
    given(partnerDecider, [created, set({ keys: 3 })])
      .when(setCeilings({ domains: 7 }))
      .thenEvents([set({ keys: 3, domains: 7 })]);
    given(partnerDecider, [created])
      .when(setCeilings({ keys: 100 }))
      .thenEvents([]);
    given(partnerDecider, []).when(setCeilings({})).thenRefused('partner_not_found');
  });

  test.each<[Partial<Ceilings>, Partial<KeyLimits>, PartnerRefusal]>([
    [{}, { requests_per_second: 51 }, 'ceiling_requests_per_second'],
    [{ requests_per_second: 9 }, { requests_per_second: 10 }, 'ceiling_requests_per_second'],
    [{ new_enrichments_per_day: 5 }, { new_enrichments_per_day: 6 }, 'ceiling_new_enrichments_per_day'],
    [{ new_enrichments_per_day: 5 }, { new_enrichments_per_day: null }, 'ceiling_new_enrichments_per_day'],
    [{}, { pending_enrichments: 10_001 }, 'ceiling_pending_enrichments'],
    [{}, { company_signals: true }, 'ceiling_company_signals'],
  ])('of %o refuses a user a key with %o', (ceilings, wanted, refusal) => {
    const low = strong('k1', { requests_per_second: 1, new_enrichments_per_day: 1, pending_enrichments: 1 });
    const before = [created, low, set(ceilings)];
    given(partnerDecider, before).when(byUser(wanted)).thenRefused(refusal);
    given(partnerDecider, before).when(updateByUser(wanted)).thenRefused(refusal);
    const made = { ...byUser(wanted), by: 'operator' } as const;
    expect(
      partnerDecider.decide(made, before.reduce(partnerDecider.evolve, partnerDecider.initial)),
    ).toMatchObject({ ok: true });
  });

  it('lets a user change other fields of a key that the operator has set above it', () => {
    const over = { requests_per_second: 5_000, company_signals: true };
    given(partnerDecider, [created, strong('k1', over)])
      .when(updateByUser({ ...limits, ...over, pending_enrichments: 1 }))
      .thenEvents([
        {
          type: 'partners.KeyUpdated.v1',
          data: {
            ...limits,
            ...over,
            pending_enrichments: 1,
            partner_id: ANNA,
            key_id: 'k1',
            updated_at: at,
          },
        },
      ]);
  });

  it('of keys counts those that are neither revoked nor expired', () => {
    const expired = { expires_at: new Date(AT).toISOString() };
    const two = [created, set({ keys: 2 }), keyMade('k2', 'two'), keyMade('k3', 'three')];
    given(partnerDecider, two).when(byUser({})).thenRefused('ceiling_keys');
    given(partnerDecider, [...two, revoked('k3')])
      .when(byUser({}))
      .thenEvents([keyMade('k9', 'k9')]);
    given(partnerDecider, [...two, revoked('k3'), strong('k1', expired)])
      .when(byUser({}))
      .thenEvents([keyMade('k9', 'k9')]);
    // Users may not leave any number of expired keys either.
    const many = Array.from({ length: 20 }, (_, nth) => strong(`e${nth}`, expired));
    given(partnerDecider, [created, set({ keys: 2 }), ...many])
      .when(byUser({}))
      .thenRefused('ceiling_keys');
    // An expired key that gets more time counts again.
    given(partnerDecider, [...two, strong('k1', expired)])
      .when(updateByUser({ expires_at: null }))
      .thenRefused('ceiling_keys');
  });
});
