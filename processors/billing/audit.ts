import { setImmediate } from 'node:timers/promises';
import type pg from 'pg';
import type { DatabasePool } from 'slonik';
import { readExpiredSince, readLedger, readReceipts } from '../../commands/billing/read-for-audit.ts';
import { type Anchor, anchorOf, anchorText } from '../../domain/billing/anchors.ts';
import {
  type Chain,
  checkAnchors,
  checkDigest,
  createChainCheck,
  type Difference,
  type Entry,
  type MonthOfLedger,
  monthOf,
  monthsOf,
} from '../../domain/billing/audit-ledger.ts';
import {
  ALL_CALLERS,
  checkMissing,
  checkReadModel,
  checkReceipts,
  checkUsage,
  keyLabel,
  type UnitRow,
  type UnitSum,
  userLabel,
  withoutDeleted,
} from '../../domain/billing/audit-reveals.ts';
import { isoTime } from '../../domain/kernel/time.ts';
import type { Position } from '../../event-store/port.ts';
import { nextTurn } from '../../platform/clock/waiting.ts';
import { type Signer, serviceKey, signerFrom } from '../../platform/crypto/keyring.ts';
import type { MasterKey } from '../../platform/crypto/master-key.ts';
import {
  countUnits,
  countUnitsOfKeys,
  countUnitsOfUsers,
  readUnitRows,
} from '../../queries/billing/reveal-units.ts';
import { readExpiringReveals, readUnsweptReveals } from '../../queries/reveals/reveals.ts';
import type { ProcessorDeps } from '../deps.ts';
import type { Reached } from '../retire-streams.ts';
import { BILLING } from './bill-completed-reveals.ts';

interface ChainDeps extends Pick<ProcessorDeps, 'store'> {
  readonly processed: Reached;
}

/** What making an anchor needs. */
export type AnchoringDeps = ChainDeps & SigningDeps;

interface SigningDeps extends ProcessorDeps {
  readonly master: MasterKey;
}

/** A partner's ledger at one moment. */
interface ReadChain {
  readonly chain: Chain;
  /** Head of the log at the start: reveals completed before it have an entry in the chain. */
  readonly head: Position;
  /** Head of the log up to which the chain was read. */
  readonly billed: Position;
  /** Notes for the auditor, one sentence each. */
  readonly notes: string[];
}

/** A millisecond or two of work. */
const CHECKED_AT_ONCE = 100;

const EMPTY_LOG = -1n as Position;

/**
 * Reads a partner's ledger and checks its chain, after every reveal completed so far has an entry.
 * @param patienceMs time limit for the billing processor
 */
async function readChain(
  { store, processed }: ChainDeps,
  partnerId: string,
  patienceMs: number,
): Promise<ReadChain> {
  const notes: string[] = [];
  const head = (await store.head()) ?? EMPTY_LOG;
  if (!(await processed.reached([BILLING.name], head, patienceMs))) {
    notes.push(`processor ${BILLING.name} is behind: what it has not come to shows as missing_entry`);
  }
  // Everything completed before `head` has its entry by now, later in the log.
  const billed = (await store.head()) ?? head;
  const { add, chain } = createChainCheck(partnerId);
  for (const [nth, entry] of (await readLedger(store, partnerId, billed)).entries()) {
    add(entry);
    if (nth % CHECKED_AT_ONCE === 0) await setImmediate();
  }
  return { chain, head, billed, notes };
}

/** Loads or creates the key that signs anchors and nothing else. */
const anchorSigner = async (pool: pg.Pool, master: MasterKey): Promise<Signer> =>
  signerFrom(await serviceKey(pool, master, 'audit-anchor'));

/** Makes an anchor of a partner's current ledger. @returns null if the chain has differences; an audit lists them */
export async function makeAnchor(
  { pool, master, clock, ...parts }: AnchoringDeps,
  partnerId: string,
  patienceMs: number,
): Promise<Anchor | null> {
  const { chain } = await readChain(parts, partnerId, patienceMs);
  if (chain.differences.length > 0) return null;
  const signer = await anchorSigner(pool, master);
  const unsigned = anchorOf(partnerId, chain.entries, isoTime(clock.now()));
  return { ...unsigned, public_key: signer.publicKey, signature: signer.sign(anchorText(unsigned)) };
}

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

export interface AuditDeps extends AnchoringDeps {
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
export async function auditBilling(
  deps: AuditDeps,
  { partnerId, month, digest, anchors, patienceMs, maxReveals }: AuditOptions,
): Promise<BillingAudit> {
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
}

const MAX_REVEALS_LISTED = 20;

function pendingNote(pending: readonly string[]): string {
  const more = pending.length > MAX_REVEALS_LISTED ? ` and ${pending.length - MAX_REVEALS_LISTED} more` : '';
  return (
    `pending reveals: ${pending.length}; whoever holds a complete receipt of one has proof that its completion was ` +
    `removed: ${pending.slice(0, MAX_REVEALS_LISTED).join(' ')}${more}`
  );
}

const READ_MODELS = [
  ['reveal-units', 'read_model_mismatch'],
  ['reveals', 'missing_completion or missing_receipt'],
] as const;

async function differencesFrom(
  { pool, master }: AuditDeps,
  partnerId: string,
  { entries }: Chain,
  anchors: readonly Anchor[],
  notes: string[],
): Promise<Difference[]> {
  const signer = await anchorSigner(pool, master);
  notes.push(`anchors checked: ${anchors.length}; this service signs with ${signer.publicKey}`);
  return checkAnchors(partnerId, entries, anchors, (text, { signature }) => signer.verify(text, signature));
}

const KEYS_AT_ONCE = 1_000;

/** Reads the counts behind usage, from the rows of `GET /v1/usage`: by key, by user and of all, by month. */
async function readUsage(
  db: DatabasePool,
  partnerId: string,
  entries: readonly Entry[],
  rows: readonly UnitRow[],
  upTo: bigint,
): Promise<UnitSum[]> {
  const all = [...entries, ...rows];
  // PostgreSQL has no year 0; an entry with that year differs from usage anyway.
  const months = new Set(
    all.map(({ completed_at }) => monthOf(completed_at)).filter((month) => month > '0001'),
  );
  const keys = [...new Set(all.flatMap(({ key_id }) => key_id ?? []))];
  const sums: UnitSum[] = [];
  for (const month of months) {
    sums.push({ month, who: ALL_CALLERS, ...(await countUnits(db, partnerId, month, upTo)) });
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
}
