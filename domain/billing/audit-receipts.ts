import { readEvent } from '../kernel/events.ts';
import { REVEAL_PREFIX, type RevealEvent, type RevealResult, revealEvents } from '../reveals/events.ts';
import type { Chain, Difference, DifferenceKind, Entry } from './audit-chain.ts';
import { billingStream } from './events.ts';

/** An event of a reveal's stream, valid or not. */
export interface StoredRevealEvent {
  readonly stream: string;
  readonly revision: number;
  readonly position: bigint;
  readonly type: string;
  readonly data: object;
}

type Requested = Extract<RevealEvent, { type: 'reveals.RevealRequested.v1' }>['data'];
type Completed = Extract<RevealEvent, { type: 'reveals.RevealCompleted.v1' }>['data'];

/** What an audit needs of a stored reveal, without its result. */
export interface Receipt {
  readonly revision: number;
  readonly position: bigint;
  /** null: no readable event has the time of the request. */
  readonly requested: Pick<Requested, 'created_at' | 'expires_at'> | null;
  readonly completed: (Omit<Completed, 'result'> & { readonly hasData: boolean }) | null;
}

/** The stored reveals of one partner, by id. */
export interface Receipts {
  readonly byId: ReadonlyMap<string, Receipt>;
  readonly differences: readonly Difference[];
}

/** Collects receipts event by event; the stream's name identifies the reveal. */
export const gatherReceipts = () => {
  const byId = new Map<string, Receipt>();
  const differences: Difference[] = [];
  return {
    receipts: { byId, differences } satisfies Receipts,
    add: ({ stream, revision, position, type, data }: StoredRevealEvent): void => {
      const reveal_id = stream.slice(REVEAL_PREFIX.length);
      const differ = (kind: DifferenceKind, detail: string): void =>
        void differences.push({ kind, stream, revision, reveal_id, detail });
      const known = byId.get(reveal_id);
      const event = read(type, data);
      if (typeof event === 'string') {
        differ('unreadable_receipt', event);
        // An unreadable event may be the completion.
        byId.set(reveal_id, { ...(known ?? { revision, position, completed: null }), requested: null });
      } else if (event.type === 'reveals.RevealRequested.v1') {
        const { created_at, expires_at } = event.data;
        byId.set(
          reveal_id,
          known ?? { revision, position, requested: { created_at, expires_at }, completed: null },
        );
      } else if (known?.completed) {
        differ('duplicate_reveal', `completed at revision ${known.revision} already`);
      } else {
        const { result, ...rest } = event.data;
        const { created_at, expires_at } = rest;
        const completed = { ...rest, hasData: isNonempty(result) };
        byId.set(reveal_id, { revision, position, requested: { created_at, expires_at }, completed });
      }
    },
  };
};

/** Returns whether any Company or Network field is known (contract, Reveals 3). */
const isNonempty = ({ company, network }: RevealResult): boolean =>
  [company, network].some(
    (fields) => fields !== null && Object.values(fields).some((value) => value !== null),
  );

const read = (type: string, data: object): RevealEvent | string => {
  try {
    return readEvent(revealEvents, { type, data }) ?? `${type} is no event of a reveal`;
  } catch (error) {
    return String((error as Error).message).replaceAll(/\s+/g, ' ');
  }
};

export interface ReceiptCheck {
  readonly checked: number;
  readonly differences: readonly Difference[];
}

const COMMON = ['partner_id', 'reveal_id', 'tracker_id', 'key_id', 'user_id', 'completed_at'] as const;

/**
 * Compares a ledger with the stored receipts: each completed reveal has an entry with the receipt's unit, which matches the
 * result, and no entry contradicts its reveal. `checkMissing` finds what is missing.
 * @param upTo end of the log up to which receipts were read; entries may have been read further
 */
export const checkReceipts = (
  partnerId: string,
  { entries }: Chain,
  { byId }: Receipts,
  upTo: bigint,
): ReceiptCheck => {
  const differences: Difference[] = [];
  const ledgerTotals = new Set(entries.map(({ reveal_id }) => reveal_id));
  for (const [reveal_id, { completed, revision }] of byId) {
    const stream = `${REVEAL_PREFIX}${reveal_id}`;
    const differ = (kind: DifferenceKind, detail: string): void =>
      void differences.push({ kind, stream, revision, reveal_id, detail });
    if (!completed) continue;
    if (completed.billable !== completed.hasData) {
      const stated = completed.billable
        ? 'billable, though its result is empty'
        : 'not billable, though its result has data';
      differ('unit_mismatch', `the receipt is ${stated}`);
    }
    if (!ledgerTotals.has(reveal_id)) differ('missing_entry', `completed at ${completed.completed_at}`);
  }
  let checked = 0;
  for (const entry of entries) {
    const receipt = byId.get(entry.reveal_id);
    // Of a reveal that was completed after that, the request alone may have been read.
    if (!receipt || (!receipt.completed && entry.position > upTo)) continue;
    checked += 1;
    differences.push(...compared(billingStream(partnerId), entry, receipt));
  }
  return { checked, differences };
};

const compared = (stream: string, entry: Entry, { completed, position }: Receipt): Difference[] => {
  const differ = (kind: DifferenceKind, detail: string): Difference => ({
    kind,
    stream,
    revision: entry.number,
    reveal_id: entry.reveal_id,
    detail,
  });
  if (!completed) return [differ('unknown_reveal', 'the reveal is still kept, and is not completed')];
  const found: Difference[] = [];
  const units = completed.billable ? 1 : 0;
  if (entry.units !== units)
    found.push(differ('unit_mismatch', `${entry.units} billed, the receipt has ${units}`));
  for (const field of COMMON) {
    if (entry[field] === completed[field]) continue;
    found.push(differ('receipt_mismatch', `${field} is ${entry[field]}, in the receipt ${completed[field]}`));
  }
  if (entry.position !== position) {
    found.push(differ('receipt_mismatch', `position is ${entry.position}, the receipt's ${position}`));
  }
  return found;
};
