import { aheadAfter, DAY } from '../kernel/time.ts';
import { REVEAL_PREFIX, type RevealEvent, type RevealResult, revealEvents } from '../reveals/events.ts';
import {
  type Chain,
  type Difference,
  type DifferenceKind,
  differ,
  type Entry,
  monthOf,
  readOrReason,
  type StoredEntry,
} from './audit-ledger.ts';
import { billingStream } from './events.ts';

/** An event of a reveal's stream, valid or not. */
type StoredRevealEvent = StoredEntry & { readonly stream: string };

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
export function gatherReceipts() {
  const byId = new Map<string, Receipt>();
  const differences: Difference[] = [];
  return {
    receipts: { byId, differences } satisfies Receipts,
    add: ({ stream, revision, position, type, data }: StoredRevealEvent): void => {
      const reveal_id = stream.slice(REVEAL_PREFIX.length);
      const note = (kind: DifferenceKind, detail: string): void =>
        void differences.push(differ(stream)(kind, revision, reveal_id, detail));
      const known = byId.get(reveal_id);
      const event = readOrReason(revealEvents, { type, data }, 'event of a reveal');
      if (typeof event === 'string') {
        note('unreadable_receipt', event);
        // An unreadable event may be the completion.
        byId.set(reveal_id, { ...(known ?? { revision, position, completed: null }), requested: null });
      } else if (event.type === 'reveals.RevealRequested.v1') {
        const { created_at, expires_at } = event.data;
        byId.set(
          reveal_id,
          known ?? { revision, position, requested: { created_at, expires_at }, completed: null },
        );
      } else if (known?.completed) {
        note('duplicate_reveal', `completed at revision ${known.revision} already`);
      } else {
        const { result, ...rest } = event.data;
        const { created_at, expires_at } = rest;
        const completed = { ...rest, hasData: isNonempty(result) };
        byId.set(reveal_id, { revision, position, requested: { created_at, expires_at }, completed });
      }
    },
  };
}

/** Returns whether any Company or Network field is known (contract, Reveals 3). */
const isNonempty = ({ company, network }: RevealResult): boolean =>
  [company, network].some(
    (fields) => fields !== null && Object.values(fields).some((value) => value !== null),
  );

interface ReceiptCheck {
  readonly checked: number;
  readonly differences: readonly Difference[];
}

const COMMON = ['partner_id', 'reveal_id', 'tracker_id', 'key_id', 'user_id', 'completed_at'] as const;

/**
 * Compares a ledger with the stored receipts: each completed reveal has an entry with the receipt's unit, which matches the
 * result, and no entry contradicts its reveal. `checkMissing` finds what is missing.
 * @param upTo end of the log up to which receipts were read; entries may have been read further
 */
export function checkReceipts(
  partnerId: string,
  { entries }: Chain,
  { byId }: Receipts,
  upTo: bigint,
): ReceiptCheck {
  const differences: Difference[] = [];
  const ledgerTotals = new Set(entries.map(({ reveal_id }) => reveal_id));
  for (const [reveal_id, { completed, revision }] of byId) {
    const note = (kind: DifferenceKind, detail: string): void =>
      void differences.push(differ(`${REVEAL_PREFIX}${reveal_id}`)(kind, revision, reveal_id, detail));
    if (!completed) continue;
    if (completed.billable !== completed.hasData) {
      const stated = completed.billable
        ? 'billable, though its result is empty'
        : 'not billable, though its result has data';
      note('unit_mismatch', `the receipt is ${stated}`);
    }
    if (!ledgerTotals.has(reveal_id)) note('missing_entry', `completed at ${completed.completed_at}`);
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
}

function compared(stream: string, entry: Entry, { completed, position }: Receipt): Difference[] {
  const difference = (kind: DifferenceKind, detail: string): Difference =>
    differ(stream)(kind, entry.number, entry.reveal_id, detail);
  if (!completed) return [difference('unknown_reveal', 'the reveal is still kept, and is not completed')];
  const found: Difference[] = [];
  const units = completed.billable ? 1 : 0;
  if (entry.units !== units)
    found.push(difference('unit_mismatch', `${entry.units} billed, the receipt has ${units}`));
  for (const field of COMMON) {
    if (entry[field] === completed[field]) continue;
    found.push(
      difference('receipt_mismatch', `${field} is ${entry[field]}, in the receipt ${completed[field]}`),
    );
  }
  if (entry.position !== position) {
    found.push(difference('receipt_mismatch', `position is ${entry.position}, the receipt's ${position}`));
  }
  return found;
}

/** A reveal in the read model of receipts. */
export interface UnsweptReveal {
  readonly reveal_id: string;
  readonly pending: boolean;
  /** ISO 8601. */
  readonly expires_at: string;
  /** Position of its newest event. */
  readonly last_position: bigint;
}

/** Evidence of reveals besides their own streams. */
interface Traces {
  /** Ids in the streams `expired-…`, or that a sweep has recorded and is about to append there. */
  readonly expired: ReadonlySet<string>;
  /** Rows of `read.reveal` by id, read before `expired`, because a sweep appends the id before it deletes the row. */
  readonly rows: ReadonlyMap<string, UnsweptReveal>;
}

/** Time of the audit: the auditing process's clock, milliseconds, and the end of the audited log. */
interface AuditMoment {
  readonly now: number;
  readonly upTo: bigint;
}

/**
 * For this long after completion, a reveal leaves its receipt or its id in `expired-…`: it expires at its completion at the
 * earliest, and `expired-…` is kept for 60 more days. One day allows for clock skew and midnights.
 */
const TRACED_MS = 59 * DAY;

interface MissingCheck {
  /** Entries without a receipt whose ids are in `expired-…`, or whose expired receipts are being deleted. */
  readonly expired: number;
  /** Entries so old that no trace of their receipts must be left. */
  readonly untraceable: number;
  /** Reveals that are pending in both the store and the read model. */
  readonly pending: readonly string[];
  readonly differences: readonly Difference[];
}

/**
 * Leaves out expired receipts of which the request alone was read: a sweep may have deleted them while the log was read, between its
 * batches. The request itself says when it expires: who changes the read model must not hide that a completion is gone.
 */
export function withoutDeleted({ byId, differences }: Receipts, { now }: AuditMoment): Receipts {
  const isLeft = ([, { requested, completed }]: [string, Receipt]): boolean =>
    completed !== null || !isExpired(requested, now);
  return { byId: new Map([...byId].filter(isLeft)), differences };
}

/** Finds entries, requests and rows whose receipt or completion should still be in the store but is not. */
export function checkMissing(
  partnerId: string,
  chain: Chain,
  receipts: Receipts,
  traces: Traces,
  moment: AuditMoment,
): MissingCheck {
  const entries = entriesWithoutReceipt(partnerId, chain, receipts, traces, moment);
  return {
    ...entries,
    pending: pendingReveals(receipts, traces, moment),
    differences: [
      ...entries.differences,
      ...requestsWithoutCompletion(receipts, traces, moment),
      ...rowsWithoutReceipt(receipts, traces, moment),
    ],
  };
}

function entriesWithoutReceipt(
  partnerId: string,
  { entries }: Chain,
  { byId }: Receipts,
  { expired, rows }: Traces,
  { now, upTo }: AuditMoment,
): Omit<MissingCheck, 'pending'> {
  const differences: Difference[] = [];
  const counts = { expired: 0, untraceable: 0 };
  for (const { number, reveal_id, completed_at, position } of entries) {
    // A receipt that completed after the audited part of the log was not read.
    if (byId.has(reveal_id) || position > upTo) continue;
    if (expired.has(reveal_id) || isExpired(rows.get(reveal_id), now)) counts.expired += 1;
    else if (Date.parse(completed_at) <= now - TRACED_MS) counts.untraceable += 1;
    else {
      const detail = `completed at ${completed_at}: the store has neither the reveal nor its id among the expired`;
      differences.push(differ(billingStream(partnerId))('missing_receipt', number, reveal_id, detail));
    }
  }
  return { ...counts, differences };
}

const pendingReveals = ({ byId }: Receipts, { rows }: Traces, { now }: AuditMoment): string[] =>
  [...byId].flatMap(([reveal_id, { requested, completed }]) => {
    const row = rows.get(reveal_id);
    return !completed && requested && row?.pending && !isExpired(row, now) ? [reveal_id] : [];
  });

const requestsWithoutCompletion = (
  { byId }: Receipts,
  { expired, rows }: Traces,
  { now, upTo }: AuditMoment,
): Difference[] =>
  [...byId].flatMap(([reveal_id, { revision, requested, completed }]): Difference[] => {
    if (completed || !requested) return [];
    if (isExpired(requested, now) || expired.has(reveal_id)) return [];
    const row = rows.get(reveal_id);
    if (row && (row.pending || row.last_position > upTo)) return [];
    const shown = row ? 'shows it as complete' : 'does not have it';
    const detail = `requested at ${requested.created_at} and not completed; the read model ${shown}`;
    return [differ(`${REVEAL_PREFIX}${reveal_id}`)('missing_completion', revision, reveal_id, detail)];
  });

const rowsWithoutReceipt = ({ byId }: Receipts, { expired, rows }: Traces, { now, upTo }: AuditMoment) =>
  [...rows.values()].flatMap((row): Difference[] => {
    const { reveal_id, last_position, pending } = row;
    const isGone = expired.has(reveal_id) || isExpired(row, now);
    if (byId.has(reveal_id) || isGone || last_position > upTo) return [];
    const detail = `the read model has it as ${pending ? 'pending' : 'complete'}, the store has no such reveal`;
    return [differ(`${REVEAL_PREFIX}${reveal_id}`)('missing_receipt', null, reveal_id, detail)];
  });

/** Returns whether a sweep may be deleting the receipt: it deletes the stream before it appends the id to `expired-…`. */
const isExpired = (item: { readonly expires_at: string } | null | undefined, now: number): boolean =>
  item != null && Date.parse(item.expires_at) <= aheadAfter(now);

/** A completed reveal in the read model. */
export interface UnitRow {
  readonly reveal_id: string;
  readonly tracker_id: string;
  readonly key_id: string | null;
  readonly user_id: string | null;
  readonly completed_at: string;
  readonly units: number;
  readonly position: bigint;
  readonly ledger_number: number | null;
}

const FIELDS = ['tracker_id', 'key_id', 'user_id', 'units', 'position'] as const;

/** Compares a ledger with the read model's rows of the same completions, in both directions. */
export function checkReadModel(
  partnerId: string,
  entries: readonly Entry[],
  rows: readonly UnitRow[],
): Difference[] {
  const differences: Difference[] = [];
  const difference = differ(billingStream(partnerId));
  const note = (revision: number | null, reveal_id: string, detail: string): void =>
    void differences.push(difference('read_model_mismatch', revision, reveal_id, detail));
  const byReveal = new Map(rows.map((row) => [row.reveal_id, row]));
  for (const entry of entries) {
    const { number, reveal_id, completed_at } = entry;
    const row = byReveal.get(reveal_id);
    byReveal.delete(reveal_id);
    if (!row) {
      note(number, reveal_id, 'the read model has no such reveal');
      continue;
    }
    for (const field of FIELDS) {
      if (row[field] !== entry[field]) {
        note(number, reveal_id, `${field} is ${entry[field]}, in the read model ${row[field]}`);
      }
    }
    if (Date.parse(row.completed_at) !== Date.parse(completed_at)) {
      note(number, reveal_id, `completed_at is ${completed_at}, in the read model ${row.completed_at}`);
    }
    if (row.ledger_number !== number) {
      note(number, reveal_id, `the read model calls it entry ${row.ledger_number}`);
    }
  }
  for (const { reveal_id, ledger_number, units } of byReveal.values()) {
    note(ledger_number, reveal_id, `the read model has it with ${units} units, the ledger does not`);
  }
  return differences;
}

/** Completed reveals and their units in a month (`YYYY-MM`), of a key, a user, or all of the partner. */
export interface UnitSum {
  readonly month: string;
  readonly who: string;
  readonly completed: number;
  readonly units: number;
}

export const ALL_CALLERS = 'all';
/** Labels of a sum's owner. */
export const keyLabel = (keyId: string): string => `key ${keyId}`;
export const userLabel = (userId: string): string => `user ${userId}`;

function sumsOf(entries: readonly Entry[]): UnitSum[] {
  const sums = new Map<string, UnitSum>();
  for (const { completed_at, key_id, user_id, units } of entries) {
    const month = monthOf(completed_at);
    const whose = [ALL_CALLERS];
    if (key_id !== null) whose.push(keyLabel(key_id));
    if (user_id !== null) whose.push(userLabel(user_id));
    for (const who of whose) {
      const id = `${month} ${who}`;
      const { completed, units: before } = sums.get(id) ?? { completed: 0, units: 0 };
      sums.set(id, { month, who, completed: completed + 1, units: before + units });
    }
  }
  return [...sums.values()];
}

/** Compares the ledger's sums with those of usage. */
export function checkUsage(
  partnerId: string,
  entries: readonly Entry[],
  usage: readonly UnitSum[],
): Difference[] {
  const byId = (sums: readonly UnitSum[]) => new Map(sums.map((sum) => [`${sum.month} ${sum.who}`, sum]));
  const [usageTotals, ledgerTotals] = [byId(usage), byId(sumsOf(entries))];
  return [...new Set([...ledgerTotals.keys(), ...usageTotals.keys()])].sort().flatMap((id): Difference[] => {
    const [usages, ledgers] = [text(usageTotals.get(id)), text(ledgerTotals.get(id))];
    if (usages === ledgers) return [];
    const detail = `${id}: ${ledgers} in the ledger, ${usages} in usage`;
    return [differ(billingStream(partnerId))('usage_mismatch', null, null, detail)];
  });
}

const text = (sum: UnitSum | undefined): string =>
  `${sum?.units ?? 0} units of ${sum?.completed ?? 0} reveals`;
