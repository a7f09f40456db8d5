import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DAY, HOUR } from '../../domain/kernel/time.ts';
import { type IntakeCommand, intakeDecider, snapshotIntake } from '../../domain/lookup/intake.ts';
import { given } from '../domain/deciding.ts';
import { ANNA, AT, made, reservation, settled } from './lookup-events.ts';

const reserve = (nth: number, ip: string, over: Partial<Extract<IntakeCommand, { type: 'Reserve' }>> = {}) =>
  ({
    type: 'Reserve',
    reservation_id: reservation(ANNA, nth).reservation_id,
    partner_id: ANNA,
    key_id: 'key_a',
    ip,
    kind: 'first',
    dailyAllowance: null,
    pendingLimit: 10,
    finished: null,
    at: AT,
    ...over,
  }) as const;

describe('reserving', () => {
  it('appends the reservation', () => {
    given(intakeDecider, [])
      .when(reserve(1, '8.8.8.8'))
      .thenEvents([made(1, '8.8.8.8')]);
  });
  it('changes nothing while the address is already reserved', () => {
    given(intakeDecider, [made(1, '8.8.8.8')])
      .when(reserve(2, '8.8.8.8', { pendingLimit: 0, dailyAllowance: 0 }))
      .thenEvents([]);
  });
  it("is refused at the key's daily allowance, which counts joined and settled reservations", () => {
    const before = [made(1, '8.8.8.8'), settled(1), made(2, '8.8.4.4')];
    given(intakeDecider, before)
      .when(reserve(3, '1.1.1.1', { dailyAllowance: 2 }))
      .thenRefused('enrichment_limit');
    given(intakeDecider, before)
      .when(reserve(3, '1.1.1.1', { dailyAllowance: 3 }))
      .thenEvents([made(3, '1.1.1.1')]);
    given(intakeDecider, before)
      .when(reserve(3, '1.1.1.1', { dailyAllowance: 2, key_id: 'key_b' }))
      .thenEvents([made(3, '1.1.1.1', AT, 'key_b')]);
  });
  it('has a new allowance on the next UTC day', () => {
    given(intakeDecider, [made(1, '8.8.8.8')])
      .when(reserve(2, '1.1.1.1', { dailyAllowance: 1, at: AT + DAY }))
      .thenEvents([made(2, '1.1.1.1', AT + DAY)]);
  });
  it.each([
    ['an hour', '2026-03-01T23:30:00.000Z', HOUR],
    ['a year', '2026-03-01T12:00:00.000Z', 365 * DAY],
  ])('has the rest of its allowance after the correction of a clock ahead by %s', (_by, now, ms) => {
    const at = Date.parse(now);
    const before = [made(1, '8.8.8.8', at), made(2, '8.8.4.4', at + ms), made(3, '9.9.9.9', at + ms)];
    given(intakeDecider, before)
      .when(reserve(4, '1.1.1.1', { dailyAllowance: 1, at }))
      .thenRefused('enrichment_limit');
    given(intakeDecider, before)
      .when(reserve(4, '1.1.1.1', { dailyAllowance: 2, at }))
      .thenEvents([made(4, '1.1.1.1', at)]);
    const after = [...before, made(4, '1.1.1.1', at)];
    given(intakeDecider, after)
      .when(reserve(5, '1.0.0.1', { dailyAllowance: 2, at }))
      .thenRefused('enrichment_limit');
    // The day that the wrong clock started begins with nothing used.
    given(intakeDecider, after)
      .when(reserve(5, '1.0.0.1', { dailyAllowance: 1, at: at + ms }))
      .thenEvents([made(5, '1.0.0.1', at + ms)]);
  });
  it('is refused with an allowance of 0', () => {
    given(intakeDecider, [])
      .when(reserve(1, '8.8.8.8', { dailyAllowance: 0 }))
      .thenRefused('enrichment_limit');
  });
  it("is refused at the key's pending limit until a reservation is settled", () => {
    const before = [made(1, '8.8.8.8'), made(2, '8.8.4.4')];
    given(intakeDecider, before)
      .when(reserve(3, '1.1.1.1', { pendingLimit: 2 }))
      .thenRefused('pending_limit');
    given(intakeDecider, [...before, settled(1)])
      .when(reserve(3, '1.1.1.1', { pendingLimit: 2 }))
      .thenEvents([made(3, '1.1.1.1')]);
  });
  it('again for an address whose work has ended settles the old reservation in the same append', () => {
    const finished = reservation(ANNA, 1).reservation_id;
    given(intakeDecider, [made(1, '8.8.8.8')])
      .when(reserve(2, '8.8.8.8', { finished, pendingLimit: 1 }))
      .thenEvents([settled(1), made(2, '8.8.8.8')]);
  });
});

describe('settling', () => {
  it('counts once, and only for open reservations', () => {
    const reservation_ids = [1, 2].map((nth) => reservation(ANNA, nth).reservation_id);
    given(intakeDecider, [made(1, '8.8.8.8')])
      .when({ type: 'Settle', partner_id: ANNA, reservation_ids, at: AT })
      .thenEvents([settled(1)]);
  });
});

describe('erasing', () => {
  it('ends open reservations of the address, which may be reserved again', () => {
    const reservation_ids = [reservation(ANNA, 1).reservation_id];
    const erased_at = new Date(AT).toISOString();
    const erased = {
      type: 'lookup.ReservationsErased.v1',
      data: { partner_id: ANNA, reservation_ids, erased_at },
    } as const;
    const events = [made(1, '8.8.8.8'), { ...erased, data: { ...erased.data, reservation_ids } }];
    given(intakeDecider, events.slice(0, 1))
      .when({ type: 'Erase', partner_id: ANNA, reservation_ids, at: AT })
      .thenEvents(events.slice(1));
    given(intakeDecider, events)
      .when(reserve(2, '8.8.8.8', { pendingLimit: 1 }))
      .thenEvents([made(2, '8.8.8.8')]);
  });
});

describe('a snapshot', () => {
  it('replaces all earlier events', () => {
    const step = fc.record({
      nth: fc.integer({ min: 1, max: 30 }),
      settle: fc.boolean(),
      days: fc.integer({ min: 0, max: 2 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let state = intakeDecider.initial;
        for (const { nth, settle, days } of steps) {
          const command = settle
            ? ({
                type: 'Settle',
                partner_id: ANNA,
                reservation_ids: [reservation(ANNA, nth).reservation_id],
                at: AT,
              } as const)
            : reserve(nth, `8.8.8.${nth}`, { at: AT + days * DAY });
          const decision = intakeDecider.decide(command, state);
          if (decision.ok) state = decision.value.reduce(intakeDecider.evolve, state);
        }
        expect(intakeDecider.evolve(intakeDecider.initial, snapshotIntake(state))).toEqual(state);
      }),
    );
  });
});
