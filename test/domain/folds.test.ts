import { describe, expect, it, test } from 'vitest';
import { type BillCommand, ledgerDecider } from '../../domain/billing/ledger.ts';
import { type DomainCommand, domainDecider } from '../../domain/domains/domain.ts';
import { type SlotCommand, slotsDecider, snapshotSlots } from '../../domain/domains/slots.ts';
import type { Decider } from '../../domain/kernel/decider.ts';
import { utcDay } from '../../domain/kernel/time.ts';
import { type EnrichmentCommand, enrichmentDecider } from '../../domain/lookup/enrichment.ts';
import { type IntakeCommand, intakeDecider } from '../../domain/lookup/intake.ts';
import type { KeyLimits } from '../../domain/partners/events.ts';
import { type PartnerCommand, partnerDecider, snapshotPartner } from '../../domain/partners/partner.ts';
import { type UserCommand, userDecider } from '../../domain/partners/user.ts';
import { tabDecider, type Visit } from '../../domain/sessions/tab.ts';
import { snapshotTrackers, type TrackerCommand, trackersDecider } from '../../domain/trackers/trackers.ts';
import {
  type EndpointCommand,
  endpointsDecider,
  snapshotEndpoints,
} from '../../domain/webhooks/endpoints.ts';
import { MAX_APPEND_BYTES } from '../../event-store/port.ts';
import { ANNA, AT, reservation } from '../lookup/lookup-events.ts';
import { createCopyCounter } from '../support/copied-slots.ts';

const id = (nth: number) => `${String(nth).padStart(8, '0')}-0000-4000-8000-000000000000`;
const limits: KeyLimits = {
  requests_per_second: 50,
  new_enrichments_per_day: null,
  pending_enrichments: 10_000,
  company_signals: false,
  expires_at: null,
};
const ofPartner = { partner_id: ANNA, at: AT };
const secret = { master_key_id: 'k', sealed: 's' };

/** Decides the commands of each item for the given number of items and folds the events. */
const run = <State, Command, Event, R extends string>(
  decider: Decider<State, Command, Event, R>,
  commandsOf: (nth: number) => readonly Command[],
  items: number,
) => {
  const copied = createCopyCounter();
  let state = decider.initial;
  let events = 0;
  let slots = copied(state);
  for (let nth = 0; nth < items; nth += 1) {
    for (const command of commandsOf(nth)) {
      const decision = decider.decide(command, state);
      if (!decision.ok) throw new Error(decision.refusal);
      for (const event of decision.value) {
        events += 1;
        state = decider.evolve(state, event);
        slots += copied(state);
      }
    }
  }
  return { state, events, slots };
};

const kinds: Record<string, (items: number) => { events: number; slots: number }> = {
  'partner with its keys': (items) =>
    run(
      partnerDecider,
      (nth): PartnerCommand[] => [
        ...(nth === 0 ? [{ ...ofPartner, type: 'CreatePartner', name: 'acme', ceilings: {} } as const] : []),
        {
          ...ofPartner,
          type: 'CreateKey',
          key_id: id(nth),
          name: id(nth),
          hash: 'h',
          limits,
          by: 'operator',
        },
        {
          ...ofPartner,
          type: 'UpdateKey',
          key_id: id(nth),
          limits: { requests_per_second: 7 },
          by: 'operator',
        },
        ...(nth % 2 === 0 ? [{ ...ofPartner, type: 'RevokeKey', key_id: id(nth) } as const] : []),
      ],
      items,
    ),
  'partner’s trackers': (items) =>
    run(
      trackersDecider,
      (nth): TrackerCommand[] => {
        const of = { ...ofPartner, tracker_id: id(nth) };
        const fields = { name: 'a', origins: ['https://a.example'], customer_reference: null };
        return [
          { ...of, ...fields, type: 'Create', limit: items },
          { ...of, type: 'Disable' },
          ...(nth % 2 === 0 ? [{ ...of, type: 'Delete' } as const] : []),
        ];
      },
      items,
    ),
  'tracker’s places for domains': (items) =>
    run(
      slotsDecider,
      (nth): SlotCommand[] => {
        const of = { tracker_id: id(1), domain_id: id(nth), at: AT };
        return [
          { ...of, type: 'Take', partner_id: ANNA, hostname: `n${nth}.example` },
          { ...of, type: 'Free' },
        ];
      },
      items,
    ),
  'host name': (items) =>
    run(
      domainDecider,
      (nth): DomainCommand[] => {
        const of = { domain_id: id(nth), hostname: 'visits.example', at: AT + nth };
        return [
          { ...of, type: 'Claim', tracker_id: id(1), partner_id: ANNA, proven: false },
          { ...of, type: 'RecordCheck', error: null, proven: false },
          { ...of, type: 'Release' },
        ];
      },
      items,
    ),
  'partner’s webhook endpoints': (items) =>
    run(
      endpointsDecider,
      (nth): EndpointCommand[] => {
        const of = { ...ofPartner, webhook_id: id(nth) };
        const destinations = { allowHttp: false, allowPorts: [], allowNetworks: [], ownOrigins: [] };
        return [
          {
            ...of,
            type: 'Create',
            name: 'a',
            url: 'https://a.example/',
            events: ['session.created'],
            tracker_id: null,
            tracker_known: false,
            secret,
            limit: items,
            destinations,
          },
          { ...of, type: 'Update', name: 'b', events: null, enabled: false },
          ...(nth % 2 === 0 ? [{ ...of, type: 'Delete' } as const] : []),
        ];
      },
      items,
    ),
  'partner’s reservations': (items) =>
    run(
      intakeDecider,
      (nth): IntakeCommand[] => [
        {
          type: 'Reserve',
          reservation_id: id(nth),
          partner_id: ANNA,
          key_id: 'k',
          ip: `ip ${nth}`,
          kind: 'first',
          dailyAllowance: null,
          pendingLimit: items,
          finished: null,
          at: AT,
        },
        ...(nth % 2 === 0
          ? [{ type: 'Settle', partner_id: ANNA, reservation_ids: [id(nth)], at: AT } as const]
          : []),
      ],
      items,
    ),
  'address with the partners that wait for it': (items) =>
    run(
      enrichmentDecider,
      (nth): EnrichmentCommand[] => [
        { type: 'Submit', ip: '8.8.8.8', reservation: reservation(id(nth), nth), configured: [], at: AT },
      ],
      items,
    ),
  'browser tab': (items) =>
    run(
      tabDecider,
      (nth): Visit[] => [
        {
          type: 'Visit',
          visit_id: id(nth),
          tracker_id: id(1),
          partner_id: ANNA,
          visitor_country: null,
          visitors: new Map([[utcDay(AT + nth), `visitor ${nth}`]]),
          session: { session_id: id(nth), sealed: 's' },
          at: AT + nth,
        },
      ],
      items,
    ),
  ledger: (items) =>
    run(
      ledgerDecider,
      (nth): BillCommand[] => [
        {
          type: 'Bill',
          reveal: {
            partner_id: ANNA,
            reveal_id: id(nth),
            tracker_id: id(1),
            key_id: 'k',
            user_id: null,
            completed_at: '2026-03-01T12:00:00.000Z',
            billable: true,
            position: BigInt(nth + 1),
          },
        },
      ],
      items,
    ),
  user: (items) =>
    run(
      userDecider,
      (nth): UserCommand[] => [
        ...(nth === 0
          ? [{ type: 'CreateUser', user_id: id(1), partner_id: ANNA, name: 'anna', at: AT } as const]
          : []),
        { type: 'ResetPassword', user_id: id(1), at: AT + nth },
      ],
      items,
    ),
};

// A reveal's stream holds two events at most.
describe('a fold of ten times the events', () => {
  test.each(Object.keys(kinds))('copies about ten times as much for a %s', (name) => {
    const few = kinds[name]?.(200);
    const many = kinds[name]?.(2_000);
    if (!few || !many) throw new Error(name);
    expect(many.events / few.events).toBeGreaterThan(9);
    // A persistent map is a level deeper by then; a map copied for every event would reach a hundred times.
    expect(many.slots / few.slots).toBeLessThan(20);
  });
});

describe('a snapshot', () => {
  it('of a partner folds to the same state', () => {
    const { state } = run(
      partnerDecider,
      (nth): PartnerCommand[] => [
        ...(nth === 0 ? [{ ...ofPartner, type: 'CreatePartner', name: 'acme', ceilings: {} } as const] : []),
        {
          ...ofPartner,
          type: 'CreateKey',
          key_id: id(nth),
          name: id(nth),
          hash: 'h',
          limits,
          by: 'operator',
        },
        ...(nth % 2 === 0 ? [{ ...ofPartner, type: 'RevokeKey', key_id: id(nth) } as const] : []),
      ],
      20,
    );
    expect(partnerDecider.evolve(partnerDecider.initial, snapshotPartner(state))).toEqual(state);
  });

  it('of trackers folds to the same state', () => {
    const fields = { name: 'a', origins: ['https://a.example'], customer_reference: null, limit: 20 };
    const { state } = run(
      trackersDecider,
      (nth): TrackerCommand[] => [
        { ...ofPartner, ...fields, type: 'Create', tracker_id: id(nth) },
        ...(nth % 3 === 0 ? [{ ...ofPartner, type: 'Disable', tracker_id: id(nth) } as const] : []),
        ...(nth % 2 === 0 ? [{ ...ofPartner, type: 'Delete', tracker_id: id(nth) } as const] : []),
      ],
      20,
    );
    expect(snapshotTrackers(state)).toHaveLength(1);
    expect(snapshotTrackers(state).reduce(trackersDecider.evolve, trackersDecider.initial)).toEqual(state);
  });

  it('of many trackers with many origins has parts that each fit into an append and fold to the same state', () => {
    let state = trackersDecider.initial;
    const created_at = new Date(AT).toISOString();
    const origins = Array.from({ length: 50 }, (_, nth) => `https://${'x'.repeat(60)}${nth}.example`);
    for (let nth = 0; nth < 1_000; nth += 1) {
      const ids = { tracker_id: id(nth), partner_id: ANNA };
      const of = { name: 'a', origins, customer_reference: null, created_at };
      state = trackersDecider.evolve(state, { type: 'trackers.TrackerCreated.v1', data: { ...ids, ...of } });
    }
    const data = { tracker_id: id(7), partner_id: ANNA, deleted_at: created_at };
    state = trackersDecider.evolve(state, { type: 'trackers.TrackerDeleted.v1', data });
    const snapshot = snapshotTrackers(state);
    expect(snapshot.length).toBeGreaterThan(4);
    for (const part of snapshot) {
      expect(Buffer.byteLength(JSON.stringify(part))).toBeLessThan(MAX_APPEND_BYTES - 65_536);
    }
    expect(snapshot.reduce(trackersDecider.evolve, trackersDecider.initial)).toEqual(state);
    expect(snapshot.slice(0, 2).reduce(trackersDecider.evolve, state)).toEqual(state);
  });

  it('of trackers fits into an append, however many were created and deleted', () => {
    let state = trackersDecider.initial;
    const created_at = new Date(AT).toISOString();
    for (let nth = 0; nth < 30_000; nth += 1) {
      const ids = { tracker_id: id(nth), partner_id: ANNA };
      const of = { name: 'a', origins: ['https://a.example'], customer_reference: null, created_at };
      state = trackersDecider.evolve(state, { type: 'trackers.TrackerCreated.v1', data: { ...ids, ...of } });
      if (nth === 0) continue;
      const data = { ...ids, deleted_at: created_at };
      state = trackersDecider.evolve(state, { type: 'trackers.TrackerDeleted.v1', data });
    }
    const snapshot = snapshotTrackers(state);
    expect(Buffer.byteLength(JSON.stringify(snapshot))).toBeLessThan(512 * 1_024);
    expect(snapshot).toHaveLength(1);
    expect(snapshot.reduce(trackersDecider.evolve, trackersDecider.initial)).toEqual(state);
    const remove = (nth: number) => ({ ...ofPartner, type: 'Delete', tracker_id: id(nth) }) as const;
    expect(trackersDecider.decide(remove(27_600), state)).toEqual({ ok: true, value: [] });
    expect(trackersDecider.decide(remove(1), state)).toMatchObject({ refusal: 'tracker_not_found' });
    expect(state.byId.size).toBe(1);
  });

  it('of webhook endpoints folds to the same state and keeps at most a hundred deleted ones', () => {
    const { state } = run(
      endpointsDecider,
      (nth): EndpointCommand[] => [
        {
          ...ofPartner,
          type: 'Create',
          webhook_id: id(nth),
          name: 'a',
          url: 'https://a.example/',
          events: ['session.created'],
          tracker_id: null,
          tracker_known: false,
          secret,
          limit: 5,
          destinations: { allowHttp: false, allowPorts: [], allowNetworks: [], ownOrigins: [] },
        },
        ...(nth > 2 ? [{ ...ofPartner, type: 'Delete', webhook_id: id(nth) } as const] : []),
      ],
      223,
    );
    expect(state.notDeleted).toBe(3);
    const snapshot = snapshotEndpoints(state);
    expect(snapshot).toMatchObject({ data: { endpoints: { length: 73 } } });
    expect(endpointsDecider.evolve(endpointsDecider.initial, snapshot)).toEqual(state);
    const remove = (nth: number) => ({ ...ofPartner, type: 'Delete', webhook_id: id(nth) }) as const;
    expect(endpointsDecider.decide(remove(222), state)).toEqual({ ok: true, value: [] });
    expect(endpointsDecider.decide(remove(3), state)).toMatchObject({ refusal: 'webhook_not_found' });
  });

  it("of a tracker's domain slots folds to the same state and keeps at most ten released ones", () => {
    const { state } = run(
      slotsDecider,
      (nth): SlotCommand[] => {
        const of = { tracker_id: id(1), domain_id: id(nth), at: AT };
        const take = { ...of, type: 'Take', partner_id: ANNA, hostname: `n${nth}.example` } as const;
        return nth % 10 === 0 ? [take] : [take, { ...of, type: 'Free' }];
      },
      50,
    );
    const snapshot = snapshotSlots(state);
    expect(snapshot).toMatchObject({ data: { held: { length: 5 }, freed: { length: 10 } } });
    expect(slotsDecider.evolve(slotsDecider.initial, snapshot)).toEqual(state);
  });
});
