import { createHash } from 'node:crypto';
import { accept, type Decider } from '../kernel/decider.ts';
import type { BillingEvent } from './events.ts';

/** The state that the next entry of a partner's ledger depends on. */
export interface Ledger {
  /** Number of the next entry: its revision in the stream. */
  readonly next: number;
  /** Digest of the last entry. */
  readonly digest: string;
  /** Log position of the last billed completion; null before the first. */
  readonly position: bigint | null;
}

type Entry = BillingEvent['data'];

/** The billing facts of one completed reveal. */
export interface Billable extends Omit<Entry, 'units' | 'position' | 'previous' | 'digest'> {
  readonly billable: boolean;
  /** Log position of its RevealCompleted. */
  readonly position: bigint;
}

export interface BillCommand {
  readonly type: 'Bill';
  readonly reveal: Billable;
}

const NO_DIGEST = '0'.repeat(64);

/**
 * Computes an entry's digest, hex: SHA-256 of ten lines of UTF-8 separated by line feeds. Auditors' programs compute it too
 * (docs/auditing.md), so the definition never changes.
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
 * A partner's ledger (architecture, rules 2 and 3). Completions arrive in log order and may repeat after a crash, so
 * those at or before the last entry's position are ignored.
 */
export const ledgerDecider: Decider<Ledger, BillCommand, BillingEvent, never> = {
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

/** Returns the ledger's state after its last entry; earlier entries are not needed. */
export const ledgerAfter = (number: number, last: BillingEvent): Ledger =>
  ledgerDecider.evolve({ ...ledgerDecider.initial, next: number }, last);
