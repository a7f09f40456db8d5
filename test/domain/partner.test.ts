import { describe, it } from 'vitest';
import type { KeyLimits, PartnerEvent } from '../../domain/partners/events.ts';
import { partner } from '../../domain/partners/partner.ts';
import { given } from './deciding.ts';
import { ANNA, AT } from './lookup-events.ts';

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
  ({ type: 'CreateKey', partner_id: ANNA, key_id, name, hash: `hash of ${key_id}`, limits, at: AT }) as const;

describe('a partner', () => {
  const create = (name: string) => ({ type: 'CreatePartner', partner_id: ANNA, name, at: AT }) as const;
  it('is created once', () => {
    const decision = partner.decide(create('acme'), partner.initial);
    given(partner, decision.ok ? decision.value : [])
      .when(create('acme'))
      .thenRefused('partner_exists');
  });
  it('has a name of 1 to 100 characters without control characters', () => {
    for (const name of ['', ' acme', 'a'.repeat(101), 'a\u0000b', '\ud800']) {
      given(partner, []).when(create(name)).thenRefused('invalid_name');
    }
  });
  it('has to exist before it has keys', () => {
    given(partner, []).when(createKey('k1', 'one')).thenRefused('partner_not_found');
  });
});

describe('a key', () => {
  it('is created with its limits and its hash', () => {
    given(partner, [created])
      .when(createKey('k1', 'one'))
      .thenEvents([keyMade('k1', 'one')]);
  });
  it('has a name that no other live key of the partner has', () => {
    given(partner, [created, keyMade('k1', 'one')])
      .when(createKey('k2', 'one'))
      .thenRefused('key_name_taken');
    given(partner, [created, keyMade('k1', 'one'), revoked('k1')])
      .when(createKey('k2', 'one'))
      .thenEvents([keyMade('k2', 'one')]);
  });
  it('is changed in what is named and in nothing else', () => {
    given(partner, [created, keyMade('k1', 'one')])
      .when({ type: 'UpdateKey', partner_id: ANNA, key_id: 'k1', limits: { requests_per_second: 7 }, at: AT })
      .thenEvents([
        {
          type: 'partners.KeyUpdated.v1',
          data: { ...limits, requests_per_second: 7, partner_id: ANNA, key_id: 'k1', updated_at: at },
        },
      ]);
  });
  it('is revoked once and for ever', () => {
    const revoke = { type: 'RevokeKey', partner_id: ANNA, key_id: 'k1', at: AT } as const;
    given(partner, [created, keyMade('k1', 'one')])
      .when(revoke)
      .thenEvents([revoked('k1')]);
    given(partner, [created, keyMade('k1', 'one'), revoked('k1')])
      .when({ type: 'UpdateKey', partner_id: ANNA, key_id: 'k1', limits: {}, at: AT })
      .thenRefused('key_revoked');
    given(partner, [created]).when(revoke).thenRefused('key_not_found');
  });
});
