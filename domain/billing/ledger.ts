import { createHash } from 'node:crypto';
import { accept, type Decider } from '../kernel/decider.ts';
import type { BillingEvent } from './events.ts';

/** How far a partner's ledger has come: all that the next entry needs to know. */
export interface Ledger {
  /** The next entry's number: its revision in the stream. */
  readonly next: number;
  /** Of the last entry. */
  readonly digest: string;
  /** The place in the log of the last completion that has its entry; null before the first. */
  readonly position: bigint | null;
}

type Entry = BillingEvent['data'];

/** What one completed reveal comes to. */
export interface Billable extends Omit<Entry, 'units' | 'position' | 'previous' | 'digest'> {
  readonly billable: boolean;
  /** The place of its RevealCompleted in the log. */
  readonly position: bigint;
}

export interface BillCommand {
  readonly type: 'Bill';
  readonly reveal: Billable;
}

const NO_DIGEST = '0'.repeat(64);

/**
 * An entry's digest, hex: SHA-256 of ten lines of UTF-8 with a line feed between them. An auditor's own program takes it
 * the same way (docs/auditing.md), so the definition is never changed.
 */
export const digestOf = (number: number, entry: Omit<Entry, 'digest'>): string =>
  createHash('sha256')
    .update(
      [
        number,
        entry.partner_id,
        entry.reveal_id,
        entry.tracker_id,
        entry.key_id ?? '',
        entry.user_id ?? '',
        entry.completed_at,
        entry.units,
        entry.position,
        entry.previous,
      ].join('\n'),
    )
    .digest('hex');

/**
 * A partner's ledger (architecture, rules 2 and 3). Completions come in the order of the log, and perhaps again after a
 * crash: only what lies past the last entry's position makes an entry.
 */
export const ledger: Decider<Ledger, BillCommand, BillingEvent, never> = {
  initial: { next: 0, digest: NO_DIGEST, position: null },

  decide({ reveal: { billable, ...reveal } }, { next, digest, position }) {
    if (position !== null && reveal.position <= position) return accept([]);
    const entry = {
      ...reveal,
      units: billable ? (1 as const) : (0 as const),
      position: reveal.position.toString(),
      previous: digest,
    };
    return accept([{ type: 'billing.RevealBilled.v1', data: { ...entry, digest: digestOf(next, entry) } }]);
  },

  evolve: ({ next }, { data }) => ({
    next: next + 1,
    digest: data.digest,
    position: BigInt(data.position),
  }),
};

/** The ledger as its last entry, of this number, leaves it: no other needs to be read. */
export const ledgerAfter = (number: number, last: BillingEvent): Ledger =>
  ledger.evolve({ ...ledger.initial, next: number }, last);
