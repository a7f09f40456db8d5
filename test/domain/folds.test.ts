import { describe, expect, it } from 'vitest';
import { type SlotCommand, slotsDecider, snapshotSlots } from '../../domain/domains/slots.ts';
import type { Decider } from '../../domain/kernel/decider.ts';
import type { KeyLimits } from '../../domain/partners/events.ts';
import { type PartnerCommand, partnerDecider, snapshotPartner } from '../../domain/partners/partner.ts';
import { snapshotTrackers, type TrackerCommand, trackersDecider } from '../../domain/trackers/trackers.ts';
import {
  type EndpointCommand,
  endpointsDecider,
  snapshotEndpoints,
} from '../../domain/webhooks/endpoints.ts';
import { ANNA, AT } from '../lookup/lookup-events.ts';
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
    expect(snapshot).toMatchObject({ data: { endpoints: { length: 103 } } });
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
