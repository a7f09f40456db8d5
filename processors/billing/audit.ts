import type { DatabasePool } from 'slonik';
import { readExpiredSince, readReceipts } from '../../commands/billing/read-for-audit.ts';
import { type Anchor, checkAnchors, checkDigest } from '../../domain/billing/anchor.ts';
import {
  type Chain,
  type Difference,
  type Entry,
  type MonthOfLedger,
  monthOf,
  monthsOf,
} from '../../domain/billing/audit-chain.ts';
import { checkMissing, withoutDeleted } from '../../domain/billing/audit-missing.ts';
import {
  ALL,
  checkReadModel,
  checkUsage,
  keyLabel,
  type UnitRow,
  type UnitSum,
  userLabel,
} from '../../domain/billing/audit-read-model.ts';
import { checkReceipts } from '../../domain/billing/audit-receipts.ts';
import { nextTurn } from '../../platform/clock/waiting.ts';
import {
  countUnits,
  countUnitsOfKeys,
  countUnitsOfUsers,
  readUnitRows,
} from '../../queries/billing/reveal-units.ts';
import { readExpiringReveals, readUnsweptReveals } from '../../queries/reveals/reveals.ts';
import type { Reached } from '../reached.ts';
import { anchorSigner, type ChainDeps, readChain, type SigningDeps } from './read-chain.ts';

export interface BillingAudit {
  /** Output of `--json` (contract, Reveals 6). */
  readonly report: {
    readonly partner_id: string;
    readonly months: readonly MonthOfLedger[];
    readonly units: number;
    readonly differences: readonly Difference[];
  };
  /** Notes for the auditor, one sentence each. */
  readonly notes: readonly string[];
}

export interface AuditDeps extends ChainDeps, SigningDeps {
  readonly db: DatabasePool;
  readonly progress: Reached;
}

export interface AuditOptions {
  readonly partnerId: string;
  /** `YYYY-MM`: lists only this month; all months are checked. */
  readonly month?: string;
  /** A digest that the auditor noted earlier. */
  readonly digest?: string;
  /** Earlier anchors of this partner. */
  readonly anchors?: readonly Anchor[];
  /** Time limit for ledger and read model to reach the log's head, milliseconds. */
  readonly patienceMs: number;
  /** Reveals that the audit may hold in memory: it fails when the store has more. */
  readonly maxReveals?: number;
}

/**
 * Replays a partner's ledger from the store up to the current head, and compares it with the remaining receipts, the read
 * models and the counts behind usage. Reveals that complete meanwhile are left to the next audit.
 */
export const auditBilling = async (
  deps: AuditDeps,
  { partnerId, month, digest, anchors, patienceMs, maxReveals }: AuditOptions,
): Promise<BillingAudit> => {
  const { store, db, progress, clock } = deps;
  const { chain, head, billed, notes } = await readChain(deps, partnerId, patienceMs);
  for (const [name, kinds] of READ_MODELS) {
    if (await progress.reached([name], billed, patienceMs)) continue;
    notes.push(`projection ${name} is behind: what it has not come to shows as ${kinds}`);
  }
  const stored = await readReceipts(store, partnerId, head, maxReveals);
  // A sweep records ids, deletes receipts, appends the ids to `expired-…`, and only then rows and records are deleted.
  // Reading in the same order misses none.
  const receiptRows = await readUnsweptReveals(db, partnerId);
  const expiring = await readExpiringReveals(db, partnerId);
  const expiredSince = await readExpiredSince(store, partnerId, head);
  const traces = { expired: new Set([...stored.expired, ...expiring, ...expiredSince]), rows: receiptRows };
  const moment = { now: clock.now(), upTo: head };
  const receipts = withoutDeleted(stored.receipts, moment);
  const against = checkReceipts(partnerId, chain, receipts, head);
  // Each check goes through the whole ledger, in a process that may serve requests.
  await nextTurn();
  const missing = checkMissing(partnerId, chain, receipts, traces, moment);
  const last = chain.entries.at(-1)?.position ?? head;
  const upTo = last > head ? last : head;
  const rows = await readUnitRows(db, partnerId, upTo);
  const usage = await readUsage(db, partnerId, chain.entries, rows, upTo);

  notes.push(
    `${chain.entries.length} entries: ${against.checked} held against their receipts, ${missing.expired} of receipts ` +
      `that are known to have expired, ${missing.untraceable} too old for either; for the last two kinds numbering, ` +
      'digests and read model speak, and an anchor',
  );
  if (missing.pending.length > 0) notes.push(pendingNote(missing.pending));
  const months = monthsOf(chain.entries, month);
  await nextTurn();
  const ofReadModel = checkReadModel(partnerId, chain.entries, rows);
  await nextTurn();
  return {
    report: {
      partner_id: partnerId,
      months,
      units: months.reduce((sum, { units }) => sum + units, 0),
      differences: [
        ...chain.differences,
        ...receipts.differences,
        ...against.differences,
        ...missing.differences,
        ...ofReadModel,
        ...checkUsage(partnerId, chain.entries, usage),
        ...(digest === undefined ? [] : checkDigest(partnerId, chain.entries, digest)),
        ...(anchors === undefined ? [] : await differencesFrom(deps, partnerId, chain, anchors, notes)),
      ],
    },
    notes,
  };
};

const LISTED = 20;

const pendingNote = (pending: readonly string[]): string => {
  const more = pending.length > LISTED ? ` and ${pending.length - LISTED} more` : '';
  return (
    `pending reveals: ${pending.length}; whoever holds a complete receipt of one has proof that its completion was ` +
    `removed: ${pending.slice(0, LISTED).join(' ')}${more}`
  );
};

const READ_MODELS = [
  ['reveal-units', 'read_model_mismatch'],
  ['reveals', 'missing_completion or missing_receipt'],
] as const;

const differencesFrom = async (
  { pool, master }: AuditDeps,
  partnerId: string,
  { entries }: Chain,
  anchors: readonly Anchor[],
  notes: string[],
): Promise<Difference[]> => {
  const signer = await anchorSigner(pool, master);
  notes.push(`anchors checked: ${anchors.length}; this service signs with ${signer.publicKey}`);
  return checkAnchors(partnerId, entries, anchors, (text, { signature }) => signer.verify(text, signature));
};

const KEYS_AT_ONCE = 1_000;

/** Reads the counts behind usage, from the rows of `GET /v1/usage`: by key, by user and of all, by month. */
const readUsage = async (
  db: DatabasePool,
  partnerId: string,
  entries: readonly Entry[],
  rows: readonly UnitRow[],
  upTo: bigint,
): Promise<UnitSum[]> => {
  const all = [...entries, ...rows];
  // PostgreSQL has no year 0; an entry with that year differs from usage anyway.
  const months = new Set(
    all.map(({ completed_at }) => monthOf(completed_at)).filter((month) => month > '0001'),
  );
  const keys = [...new Set(all.flatMap(({ key_id }) => key_id ?? []))];
  const sums: UnitSum[] = [];
  for (const month of months) {
    sums.push({ month, who: ALL, ...(await countUnits(db, partnerId, month, upTo)) });
    for (const { id, ...sum } of await countUnitsOfUsers(db, partnerId, month, upTo)) {
      sums.push({ month, who: userLabel(id), ...sum });
    }
    for (let first = 0; first < keys.length; first += KEYS_AT_ONCE) {
      const some = keys.slice(first, first + KEYS_AT_ONCE);
      for (const { id, ...sum } of await countUnitsOfKeys(db, some, month, upTo)) {
        sums.push({ month, who: keyLabel(id), ...sum });
      }
    }
  }
  return sums;
};
