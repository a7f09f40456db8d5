import { aheadAfter } from '../kernel/ahead.ts';
import { DAY } from '../kernel/time.ts';
import { REVEAL_PREFIX } from '../reveals/events.ts';
import type { Chain, Difference } from './audit-chain.ts';
import type { Receipt, Receipts } from './audit-receipts.ts';
import { billingStream } from './events.ts';

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
export interface Traces {
  /** Ids in the streams `expired-…`, or that a sweep has recorded and is about to append there. */
  readonly expired: ReadonlySet<string>;
  /** Rows of `read.reveal` by id, read before `expired`, because a sweep appends the id before it deletes the row. */
  readonly rows: ReadonlyMap<string, UnsweptReveal>;
}

/** Time of the audit: the auditing process's clock, milliseconds, and the end of the audited log. */
export interface AuditMoment {
  readonly now: number;
  readonly upTo: bigint;
}

/**
 * For this long after completion, a reveal leaves its receipt or its id in `expired-…`: it expires at its completion at the
 * earliest, and `expired-…` is kept for 60 more days. One day allows for clock skew and midnights.
 */
const TRACED_MS = 59 * DAY;

export interface MissingCheck {
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
export const withoutDeleted = ({ byId, differences }: Receipts, { now }: AuditMoment): Receipts => {
  const isLeft = ([, { requested, completed }]: [string, Receipt]): boolean =>
    completed !== null || !isExpired(requested, now);
  return { byId: new Map([...byId].filter(isLeft)), differences };
};

/** Finds entries, requests and rows whose receipt or completion should still be in the store but is not. */
export const checkMissing = (
  partnerId: string,
  chain: Chain,
  receipts: Receipts,
  traces: Traces,
  moment: AuditMoment,
): MissingCheck => {
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
};

const entriesWithoutReceipt = (
  partnerId: string,
  { entries }: Chain,
  { byId }: Receipts,
  { expired, rows }: Traces,
  { now, upTo }: AuditMoment,
): Omit<MissingCheck, 'pending'> => {
  const differences: Difference[] = [];
  const counts = { expired: 0, untraceable: 0 };
  for (const { number, reveal_id, completed_at, position } of entries) {
    // A receipt that completed after the audited part of the log was not read.
    if (byId.has(reveal_id) || position > upTo) continue;
    if (expired.has(reveal_id) || isExpired(rows.get(reveal_id), now)) counts.expired += 1;
    else if (Date.parse(completed_at) <= now - TRACED_MS) counts.untraceable += 1;
    else {
      const detail = `completed at ${completed_at}: the store has neither the reveal nor its id among the expired`;
      const stream = billingStream(partnerId);
      differences.push({ kind: 'missing_receipt', stream, revision: number, reveal_id, detail });
    }
  }
  return { ...counts, differences };
};

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
    const stream = `${REVEAL_PREFIX}${reveal_id}`;
    const shown = row ? 'shows it as complete' : 'does not have it';
    const detail = `requested at ${requested.created_at} and not completed; the read model ${shown}`;
    return [{ kind: 'missing_completion', stream, revision, reveal_id, detail }];
  });

const rowsWithoutReceipt = ({ byId }: Receipts, { expired, rows }: Traces, { now, upTo }: AuditMoment) =>
  [...rows.values()].flatMap((row): Difference[] => {
    const { reveal_id, last_position, pending } = row;
    const isGone = expired.has(reveal_id) || isExpired(row, now);
    if (byId.has(reveal_id) || isGone || last_position > upTo) return [];
    const stream = `${REVEAL_PREFIX}${reveal_id}`;
    const detail = `the read model has it as ${pending ? 'pending' : 'complete'}, the store has no such reveal`;
    return [{ kind: 'missing_receipt', stream, revision: null, reveal_id, detail }];
  });

/** Returns whether a sweep may be deleting the receipt: it deletes the stream before it appends the id to `expired-…`. */
const isExpired = (kept: { readonly expires_at: string } | null | undefined, now: number): boolean =>
  kept != null && Date.parse(kept.expires_at) <= aheadAfter(now);
