import { type EventOf, type EventSchemas, readEvent } from '../kernel/events.ts';
import { type Anchor, anchorText } from './anchors.ts';
import { type BillingEvent, billingEvents, billingStream } from './events.ts';
import { digestOf, ledgerDecider } from './ledger.ts';

/** Kinds of audit findings; `docs/auditing.md` explains each. */
export type DifferenceKind =
  | 'number_gap'
  | 'unreadable_entry'
  | 'previous_mismatch'
  | 'digest_mismatch'
  | 'order'
  | 'duplicate_reveal'
  | 'missing_entry'
  | 'unknown_reveal'
  | 'missing_receipt'
  | 'missing_completion'
  | 'unreadable_receipt'
  | 'receipt_mismatch'
  | 'unit_mismatch'
  | 'read_model_mismatch'
  | 'usage_mismatch'
  | 'anchor_missing'
  | 'anchor_signature';

export interface Difference {
  readonly kind: DifferenceKind;
  readonly stream: string;
  readonly revision: number | null;
  readonly reveal_id: string | null;
  readonly detail: string;
}

/** Makes what reports the differences of one stream. */
export const differ =
  (stream: string) =>
  (kind: DifferenceKind, revision: number | null, reveal_id: string | null, detail: string): Difference => ({
    kind,
    stream,
    revision,
    reveal_id,
    detail,
  });

/** Reads a stored event, or returns why it is invalid. `what`: what events of the stream are. */
export function readOrReason<Schemas extends EventSchemas>(
  schemas: Schemas,
  stored: { readonly type: string; readonly data: object },
  what: string,
): EventOf<Schemas> | string {
  try {
    return readEvent(schemas, stored) ?? `${stored.type} is no ${what}`;
  } catch (error) {
    return String((error as Error).message).replaceAll(/\s+/g, ' ');
  }
}

/** An event of a ledger's stream, valid or not. */
export interface StoredEntry {
  readonly revision: number;
  /** Position of the entry itself in the log. */
  readonly position: bigint;
  readonly type: string;
  readonly data: object;
}

export interface Entry extends Omit<BillingEvent['data'], 'position' | 'previous'> {
  readonly number: number;
  readonly position: bigint;
}

export interface Chain {
  readonly entries: readonly Entry[];
  readonly differences: readonly Difference[];
}

/**
 * Checks a partner's ledger from its first entry: numbering, digests, references to the previous entry, log order, and
 * duplicate reveals. Entry by entry: a digest of each takes time, in which a server has other work.
 */
export function createChainCheck(partnerId: string): {
  readonly add: (stored: StoredEntry) => void;
  readonly chain: Chain;
} {
  const difference = differ(billingStream(partnerId));
  const differences: Difference[] = [];
  const entries: Entry[] = [];
  const numbers = new Map<string, number>();
  let next = 0;
  /** null: the previous entry is missing or unreadable. */
  let digest: string | null = ledgerDecider.initial.digest;
  let position = -1n;

  const add = ({ revision, position: ownPosition, type, data }: StoredEntry): void => {
    const note = (kind: DifferenceKind, reveal_id: string | null, detail: string): void =>
      void differences.push(difference(kind, revision, reveal_id, detail));
    if (revision !== next) {
      note('number_gap', null, `after entry ${next - 1} comes entry ${revision}`);
      digest = null;
    }
    next = revision + 1;
    const event = readOrReason(billingEvents, { type, data }, 'entry');
    if (typeof event === 'string') {
      note('unreadable_entry', null, event);
      digest = null;
      return;
    }
    const entry = event.data;
    const { reveal_id } = entry;
    if (digest !== null && entry.previous !== digest) {
      note('previous_mismatch', reveal_id, `names ${entry.previous}, the entry before has ${digest}`);
    }
    const own = digestOf(revision, entry);
    if (own !== entry.digest) {
      note('digest_mismatch', reveal_id, `has ${entry.digest}, its fields come to ${own}`);
    } else if (entry.partner_id !== partnerId) {
      note('digest_mismatch', reveal_id, `is an entry of partner ${entry.partner_id}`);
    }
    const at = BigInt(entry.position);
    if (at <= position) note('order', reveal_id, `position ${at} is not above ${position}`);
    if (at >= ownPosition)
      note('order', reveal_id, `position ${at} is not before the entry's own, ${ownPosition}`);
    const before = numbers.get(reveal_id);
    if (before !== undefined) note('duplicate_reveal', reveal_id, `stands in entry ${before} too`);
    else numbers.set(reveal_id, revision);
    const { previous: _previous, ...rest } = entry;
    entries.push({ ...rest, number: revision, position: at });
    ({ digest } = entry);
    position = at;
  };
  return { add, chain: { entries, differences } };
}

export interface MonthOfLedger {
  readonly month: string;
  readonly entries: number;
  readonly units: number;
  /** Digest of the month's last entry, for the auditor to note; null if there is none. */
  readonly head_digest: string | null;
}

/** Groups the ledger by month of completion (UTC, `YYYY-MM`), or returns one month. */
export function monthsOf(entries: readonly Entry[], only?: string): MonthOfLedger[] {
  const months = new Map<string, MonthOfLedger>();
  if (only !== undefined) months.set(only, { month: only, entries: 0, units: 0, head_digest: null });
  for (const { completed_at, units, digest } of entries) {
    const month = monthOf(completed_at);
    if (only !== undefined && month !== only) continue;
    const sum = months.get(month);
    months.set(month, {
      month,
      entries: (sum?.entries ?? 0) + 1,
      units: (sum?.units ?? 0) + units,
      head_digest: digest,
    });
  }
  return [...months.values()].sort((a, b) => (a.month < b.month ? -1 : 1));
}

/** Returns the UTC month of an ISO 8601 instant, `YYYY-MM`. */
export const monthOf = (instant: string): string => instant.slice(0, 7);

/** Checks that the chain still has a digest noted earlier. */
export const checkDigest = (partnerId: string, entries: readonly Entry[], digest: string): Difference[] =>
  entries.some((entry) => entry.digest === digest)
    ? []
    : [differ(billingStream(partnerId))('anchor_missing', null, null, `no entry has the digest ${digest}`)];

/**
 * Checks that the ledger still begins with what each anchor describes, and that each anchor is signed.
 * @param isSigned checks a signature with the service's key for anchors
 */
export function checkAnchors(
  partnerId: string,
  entries: readonly Entry[],
  anchors: readonly Anchor[],
  isSigned: (text: string, anchor: Anchor) => boolean,
): Difference[] {
  const difference = differ(billingStream(partnerId));
  const digests = new Map(entries.map(({ number, digest }) => [number, digest]));
  return anchors.flatMap((anchor): Difference[] => {
    const { made_at, entries: count, head_digest } = anchor;
    if (!isSigned(anchorText(anchor), anchor)) {
      const detail = `the anchor of ${made_at} was changed, or another key signed it: ${anchor.public_key}`;
      return [difference('anchor_signature', null, null, detail)];
    }
    if (count === 0 || digests.get(count - 1) === head_digest) return [];
    const has = digests.get(count - 1) ?? 'is not there';
    const detail = `entry ${count - 1} had ${head_digest} at ${made_at}, now ${has}`;
    return [difference('anchor_missing', count - 1, null, detail)];
  });
}
