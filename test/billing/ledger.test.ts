import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type BillingEvent, billingEvents } from '../../domain/billing/events.ts';
import { type Billable, type BillCommand, ledgerAfter, ledgerDecider } from '../../domain/billing/ledger.ts';
import { given } from '../domain/deciding.ts';
import { ANNA } from '../lookup/lookup-events.ts';

const id = (nth: number) => `${String(nth).padStart(8, '0')}-0000-4000-8000-000000000000`;
const bill = (nth: number, position: bigint, over: Partial<Billable> = {}): BillCommand => ({
  type: 'Bill',
  reveal: {
    partner_id: ANNA,
    reveal_id: id(nth),
    tracker_id: id(0),
    key_id: 'key_a',
    user_id: null,
    completed_at: '2026-03-01T12:00:00.000Z',
    billable: true,
    position,
    ...over,
  },
});
const ZEROS = '0'.repeat(64);
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const entry = (
  nth: number,
  number: number,
  position: bigint,
  previous: string,
  units: 0 | 1 = 1,
): BillingEvent => ({
  type: 'billing.RevealBilled.v1',
  data: {
    partner_id: ANNA,
    reveal_id: id(nth),
    tracker_id: id(0),
    key_id: 'key_a',
    user_id: null,
    completed_at: '2026-03-01T12:00:00.000Z',
    units,
    position: String(position),
    previous,
    digest: sha256(
      `${number}\n${ANNA}\n${id(nth)}\n${id(0)}\nkey_a\n\n2026-03-01T12:00:00.000Z\n${units}\n${position}\n${previous}`,
    ),
  },
});
const first = entry(1, 0, 10n, ZEROS);

describe("a partner's ledger", () => {
  it('begins with entry 0, whose previous digest is 64 zeros', () => {
    given(ledgerDecider, []).when(bill(1, 10n)).thenEvents([first]);
  });

  it('continues with the digest of the previous entry', () => {
    given(ledgerDecider, [first])
      .when(bill(2, 11n))
      .thenEvents([entry(2, 1, 11n, first.data.digest)]);
  });

  it('has an entry of zero units for a reveal that is not billable', () => {
    given(ledgerDecider, [first])
      .when(bill(2, 11n, { billable: false }))
      .thenEvents([entry(2, 1, 11n, first.data.digest, 0)]);
  });

  it('ignores completions at or before the position of its last entry', () => {
    given(ledgerDecider, [first]).when(bill(1, 10n)).thenEvents([]);
    given(ledgerDecider, [first]).when(bill(2, 9n)).thenEvents([]);
  });

  it('continues from its last entry alone as from all entries', () => {
    const second = entry(2, 1, 11n, first.data.digest);
    const all = [first, second].reduce(ledgerDecider.evolve, ledgerDecider.initial);
    expect(ledgerAfter(1, second)).toEqual(all);
  });

  it('distinguishes a key from a user of the same name, and null from every name', () => {
    const digest = (over: Partial<Billable>) => {
      const decision = ledgerDecider.decide(bill(1, 10n, over), ledgerDecider.initial);
      return decision.ok && decision.value[0]?.data.digest;
    };
    const whose = [
      { key_id: 'x', user_id: null },
      { key_id: null, user_id: 'x' },
      { key_id: null, user_id: null },
    ];
    expect(new Set(whose.map(digest)).size).toBe(3);
    for (const key_id of ['', 'a\nb']) {
      expect(billingEvents['billing.RevealBilled.v1'].safeParse({ ...first.data, key_id }).success).toBe(
        false,
      );
    }
  });

  it('has one entry for each completion in log order, however often and late they are delivered', () => {
    const deliveries = fc.array(fc.integer({ min: 1, max: 12 }), { maxLength: 60 });
    fc.assert(
      fc.property(deliveries, (order) => {
        const events: BillingEvent[] = [];
        let state = ledgerDecider.initial;
        for (const nth of order) {
          const decision = ledgerDecider.decide(bill(nth, BigInt(nth * 7)), state);
          if (!decision.ok) throw new Error('refused');
          events.push(...decision.value);
          state = decision.value.reduce(ledgerDecider.evolve, state);
        }
        const billed = events.map(({ data }) => BigInt(data.position));
        const rising = order.filter((nth, at) => nth > Math.max(0, ...order.slice(0, at)));
        expect(billed).toEqual(rising.map((nth) => BigInt(nth * 7)));
        events.forEach(({ data }, number) => {
          expect(data.previous).toBe(events[number - 1]?.data.digest ?? ZEROS);
        });
      }),
    );
  });
});
