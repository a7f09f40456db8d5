/** The partner's ledger, which a bill is made of, and its verification: docs/auditing.md defines digests and anchors. */
import { createHash, createPublicKey, verify } from 'node:crypto';
import type { Caller } from './call.ts';
import { createFeed, type Feed } from './feed.ts';
import type { LedgerAnchor, LedgerEntry, LedgerPage } from './generated.ts';
import type { CallOptions } from './options.ts';

export interface LedgerOptions extends CallOptions {
  /** A UTC month, `2026-03`. Default: the current one. */
  readonly month?: string | undefined;
  /** The cursor of an earlier feed of the same month. */
  readonly cursor?: string | undefined;
  /** Entries per request, 1 to 500. Default: 100. */
  readonly limit?: number | undefined;
}

export interface VerifyLedgerOptions extends CallOptions {
  /** Anchors of earlier calls, which the caller kept: the ledger must still fit them. */
  readonly anchors?: Iterable<LedgerAnchor> | undefined;
  /** Called with each verified entry, in order. */
  readonly onEntry?: ((entry: LedgerEntry) => void) | undefined;
}

/** Why a ledger is not what it should be; docs/auditing.md explains each. */
export type LedgerFault =
  | 'number_gap'
  | 'unreadable_entry'
  | 'previous_mismatch'
  | 'digest_mismatch'
  | 'order'
  | 'duplicate_reveal'
  | 'totals_mismatch'
  | 'head_mismatch'
  | 'anchor_missing'
  | 'anchor_signature';

export interface LedgerDifference {
  readonly kind: LedgerFault;
  /** The entry's; null: it is of a month or an anchor. */
  readonly number: number | null;
  readonly reveal_id: string | null;
  readonly detail: string;
}

/** What a ledger was found to be. */
export interface LedgerProof {
  /** Whether there is no difference. */
  readonly ok: boolean;
  /** The first difference, after which nothing was checked; null: there is none. */
  readonly difference: LedgerDifference | null;
  /** The verified entries by UTC month of completion, the oldest first. */
  readonly months: readonly { readonly month: string; readonly entries: number; readonly units: number }[];
  readonly entries: number;
  readonly units: number;
  /** The last verified entry. */
  readonly head: { readonly number: number; readonly digest: string } | null;
  /** The service's newest anchor, for the caller to keep and to verify against later; null: there is none yet. */
  readonly anchor: LedgerAnchor | null;
  /** Base64. The key that signed all anchors. Compare it with the one that you keep. */
  readonly publicKey: string | null;
}

const NO_DIGEST = '0'.repeat(64);
const PAGE = 500;
/** A ledger that does not begin within so many months of now has lost its beginning. */
const MAX_MONTHS = 120;

export const createLedger = ({ body }: Pick<Caller, 'body'>) => {
  const page = (query: { month?: string; cursor?: string; limit: number }, call: CallOptions) =>
    body('readLedger', { query }, call);

  const ledger = ({ month, cursor, limit = 100, ...call }: LedgerOptions = {}): Feed<LedgerEntry> => {
    // Fixed by the first page: its cursor is of no use in another month.
    let known = month;
    return createFeed({
      start: cursor,
      pause: null,
      read: async (at) => {
        const read = await page(
          { ...(known !== undefined && { month: known }), ...(at !== undefined && { cursor: at }), limit },
          call,
        );
        known = read.month;
        return { items: read.entries, cursor: read.next_cursor, hasMore: read.has_more };
      },
    });
  };

  /** The month of the first entry, by the first entry of each month before `from`. */
  const firstMonth = async (from: LedgerPage, call: CallOptions): Promise<string> => {
    let { month, entries } = from;
    for (let months = 0; from.head !== null && months < MAX_MONTHS; months += 1) {
      if (entries[0]?.number === 0) return month;
      ({ month, entries } = await page({ month: monthBefore(month), limit: 1 }, call));
    }
    return from.month;
  };

  const verifyLedger = async ({
    anchors = [],
    onEntry,
    ...call
  }: VerifyLedgerOptions = {}): Promise<LedgerProof> => {
    const now = await page({ limit: 1 }, call);
    const check = createCheck(now, [...anchors], onEntry);
    try {
      check.anchorsThemselves();
      for (let month = await firstMonth(now, call); month <= now.month; month = monthAfter(month)) {
        let cursor: string | undefined;
        let read: LedgerPage;
        do {
          read = await page({ month, ...(cursor !== undefined && { cursor }), limit: PAGE }, call);
          for (const entry of read.entries) check.add(entry, month);
          cursor = read.next_cursor;
        } while (read.has_more);
        check.endOfMonth(read);
      }
      check.end();
      return check.proof(null);
    } catch (error) {
      if (!(error instanceof Found)) throw error;
      return check.proof(error.difference);
    }
  };

  return { ledger, verifyLedger };
};

/** Ends a verification at its first difference. */
class Found extends Error {
  readonly difference: LedgerDifference;
  constructor(kind: LedgerFault, detail: string, entry?: LedgerEntry | { readonly number: number }) {
    super(detail);
    const reveal_id = entry !== undefined && 'reveal_id' in entry ? String(entry.reveal_id) : null;
    this.difference = { kind, number: entry?.number ?? null, reveal_id, detail };
  }
}

/** Verifies the ledger as it was at the first answer: what was added meanwhile is the next call's. */
const createCheck = (
  { head, anchor }: LedgerPage,
  kept: readonly LedgerAnchor[],
  onEntry: VerifyLedgerOptions['onEntry'],
) => {
  const anchors = anchor === null ? kept : [...kept, anchor];
  const anchoredAt = new Map<number, LedgerAnchor[]>();
  for (const one of anchors)
    anchoredAt.set(one.entries - 1, [...(anchoredAt.get(one.entries - 1) ?? []), one]);
  const last = head?.number ?? -1;
  /** Clocks of several processes may differ, so around a month's end numbers come in another order. */
  const early = new Map<number, { readonly entry: LedgerEntry; readonly month: string }>();
  const months = new Map<string, { entries: number; units: number }>();
  const reveals = new Set<string>();
  let ofMonth = { entries: 0, units: 0 };
  let partnerId: string | null = anchor?.partner_id ?? null;
  let previous = { number: -1, digest: NO_DIGEST, position: -1n };
  let units = 0;

  const verifyEntry = (entry: LedgerEntry, listedIn: string): void => {
    const found = (kind: LedgerFault, detail: string) => new Found(kind, detail, entry);
    if (entry.previous !== previous.digest) {
      throw found('previous_mismatch', `names ${entry.previous}, the entry before has ${previous.digest}`);
    }
    const digest = digestOf(entry);
    if (digest !== entry.digest)
      throw found('digest_mismatch', `has ${entry.digest}, its fields come to ${digest}`);
    partnerId ??= entry.partner_id;
    if (entry.partner_id !== partnerId) throw found('digest_mismatch', `is an entry of ${entry.partner_id}`);
    const position = BigInt(entry.position);
    if (position <= previous.position) {
      throw found('order', `position ${position} is not above ${previous.position}`);
    }
    if (reveals.has(entry.reveal_id)) throw found('duplicate_reveal', 'stands in an earlier entry too');
    reveals.add(entry.reveal_id);
    units += entry.units;
    const month = entry.completed_at.slice(0, 7);
    if (month !== listedIn)
      throw found('totals_mismatch', `completed at ${entry.completed_at}, but stands in ${listedIn}`);
    const sum = months.get(month) ?? { entries: 0, units: 0 };
    months.set(month, { entries: sum.entries + 1, units: sum.units + entry.units });
    previous = { number: entry.number, digest: entry.digest, position };
    verifyAnchors();
    onEntry?.(entry);
  };

  /** Those that end with the last verified entry. */
  const verifyAnchors = (): void => {
    for (const one of anchoredAt.get(previous.number) ?? []) {
      if (one.head_digest !== previous.digest || one.units !== units) {
        const detail = `had ${one.head_digest} and ${one.units} units in all at ${one.made_at}, now ${previous.digest} and ${units}`;
        throw new Found('anchor_missing', detail, previous);
      }
    }
  };

  return {
    /** Each is signed, all by one key, and of the same partner. */
    anchorsThemselves: (): void => {
      const [first] = anchors;
      for (const one of anchors) {
        if (one.public_key !== first?.public_key) {
          throw new Found(
            'anchor_signature',
            `the anchor of ${one.made_at} is signed by another key: ${one.public_key}`,
          );
        }
        if (!isSigned(one)) throw new Found('anchor_signature', `the anchor of ${one.made_at} was changed`);
        partnerId ??= one.partner_id;
        if (one.partner_id !== partnerId) {
          throw new Found(
            'anchor_missing',
            `the anchor of ${one.made_at} is of another partner: ${one.partner_id}`,
          );
        }
      }
      verifyAnchors();
    },

    add: (entry: LedgerEntry, month: string): void => {
      if (!isReadable(entry)) throw new Found('unreadable_entry', 'a field is missing or malformed', entry);
      ofMonth = { entries: ofMonth.entries + 1, units: ofMonth.units + entry.units };
      if (entry.number > last) return;
      if (entry.number <= previous.number || early.has(entry.number)) {
        throw new Found('number_gap', 'the number is there twice', entry);
      }
      early.set(entry.number, { entry, month });
      for (
        let next = early.get(previous.number + 1);
        next !== undefined;
        next = early.get(previous.number + 1)
      ) {
        early.delete(next.entry.number);
        verifyEntry(next.entry, next.month);
      }
    },

    endOfMonth: ({ month, totals }: LedgerPage): void => {
      if (totals.entries !== ofMonth.entries || totals.units !== ofMonth.units) {
        const detail = `${month} has ${ofMonth.entries} entries and ${ofMonth.units} units, its totals say ${totals.entries} and ${totals.units}`;
        throw early.size > 0 ? gapAfter(previous.number, detail) : new Found('totals_mismatch', detail);
      }
      ofMonth = { entries: 0, units: 0 };
    },

    end: (): void => {
      if (previous.number < last) throw gapAfter(previous.number, `the last one is ${last}`);
      if (head !== null && head.digest !== previous.digest) {
        throw new Found(
          'head_mismatch',
          `the head is said to have ${head.digest}, the entry has ${previous.digest}`,
          head,
        );
      }
      for (const one of anchors) {
        if (one.entries - 1 > last) {
          throw new Found(
            'anchor_missing',
            `entry ${one.entries - 1} was there at ${one.made_at} and is not now`,
          );
        }
      }
    },

    proof: (difference: LedgerDifference | null): LedgerProof => ({
      ok: difference === null,
      difference,
      months: [...months].sort(([a], [b]) => (a < b ? -1 : 1)).map(([month, sum]) => ({ month, ...sum })),
      entries: previous.number + 1,
      units,
      head: previous.number < 0 ? null : { number: previous.number, digest: previous.digest },
      anchor,
      publicKey: anchors[0]?.public_key ?? null,
    }),
  };
};

const gapAfter = (number: number, detail: string): Found =>
  new Found('number_gap', `entry ${number + 1} is missing: ${detail}`, { number: number + 1 });

const isReadable = (entry: LedgerEntry): boolean =>
  Number.isSafeInteger(entry.number) &&
  (entry.units === 0 || entry.units === 1) &&
  /^\d{1,20}$/.test(String(entry.position)) &&
  /^\d{4}-\d{2}-\d{2}T/.test(String(entry.completed_at));

const digestOf = (entry: LedgerEntry): string => {
  const who = [entry.partner_id, entry.reveal_id, entry.tracker_id, entry.key_id ?? '', entry.user_id ?? ''];
  const lines = [entry.number, ...who, entry.completed_at, entry.units, entry.position, entry.previous];
  return createHash('sha256').update(lines.join('\n'), 'utf8').digest('hex');
};

/** Ed25519 (RFC 8032). */
const isSigned = (anchor: LedgerAnchor): boolean => {
  const { partner_id, made_at, entries, units, head_digest } = anchor;
  const text = ['doorplate anchor 1', partner_id, made_at, entries, units, head_digest].join('\n');
  try {
    const der = Buffer.from(anchor.public_key, 'base64');
    const key = createPublicKey({ key: der, format: 'der', type: 'spki' });
    return verify(null, Buffer.from(text), key, Buffer.from(anchor.signature, 'base64'));
  } catch {
    return false;
  }
};

const monthBefore = (month: string): string => monthAt(month, -1);
const monthAfter = (month: string): string => monthAt(month, 1);

const monthAt = (month: string, distance: number): string => {
  const at = new Date(`${month}-01T00:00:00.000Z`);
  at.setUTCMonth(at.getUTCMonth() + distance);
  return at.toISOString().slice(0, 7);
};
