import { accept, type Decider } from '../kernel/decider.ts';
import { type AnchorEvent, anchorEvents } from './events.ts';
import { ledgerDecider } from './ledger.ts';

/** The state of a partner's ledger at one moment, signed, for partners and auditors to keep outside the operator's reach. */
export type Anchor = AnchorEvent['data'];
type UnsignedAnchor = Omit<Anchor, 'public_key' | 'signature'>;

/** An anchor in a file of an auditor's. */
export const anchorSchema = anchorEvents['billing.LedgerAnchored.v1'].strict();

/** Returns the text that an anchor's signature covers. `docs/auditing.md` defines it for other programs: it never changes. */
export const anchorText = ({ partner_id, made_at, entries, units, head_digest }: UnsignedAnchor): string =>
  ['doorplate anchor 1', partner_id, made_at, entries, units, head_digest].join('\n');

/**
 * Describes a ledger as an anchor does.
 * @param entries all entries of the ledger, in order, from a chain without differences
 * @param made_at ISO 8601, UTC
 */
export const anchorOf = (
  partner_id: string,
  entries: readonly { readonly units: number; readonly digest: string }[],
  made_at: string,
): UnsignedAnchor => ({
  partner_id,
  made_at,
  entries: entries.length,
  units: entries.reduce((sum, { units }) => sum + units, 0),
  head_digest: entries.at(-1)?.digest ?? ledgerDecider.initial.digest,
});

interface Anchors {
  /** UTC day of the last kept anchor, `YYYY-MM-DD`; null before the first. */
  readonly day: string | null;
}

interface KeepAnchor {
  readonly type: 'Keep';
  readonly anchor: Anchor;
}

const dayOf = ({ made_at }: Anchor): string => made_at.slice(0, 10);

/** The kept anchors of a partner's ledger: the first of a UTC day is kept. */
export const anchorsDecider: Decider<Anchors, KeepAnchor, AnchorEvent, never> = {
  initial: { day: null },
  decide: ({ anchor }, { day }) =>
    accept(day !== null && day >= dayOf(anchor) ? [] : [{ type: 'billing.LedgerAnchored.v1', data: anchor }]),
  evolve: (_state, { data }) => ({ day: dayOf(data) }),
};
