import type { DatabasePool } from 'slonik';
import { readLedger, readReceipts } from '../commands/billing/read-for-audit.ts';
import {
  checkAnchor,
  checkChain,
  type Difference,
  type Entry,
  type MonthOfLedger,
  monthOf,
  monthsOf,
} from '../domain/billing/audit-chain.ts';
import {
  ALL,
  checkReadModel,
  checkUsage,
  keyLabel,
  type UnitRow,
  type UnitSum,
  userLabel,
} from '../domain/billing/audit-read-model.ts';
import { checkReceipts } from '../domain/billing/audit-receipts.ts';
import type { Position } from '../event-store/port.ts';
import { BILLING_PROCESSOR } from '../processors/billing/bill-completed-reveals.ts';
import { revealUnits } from '../projections/billing/reveal-units.ts';
import { countUnits, monthEnd, monthStart, readRevealHours, readUnitRows } from '../read-api/billing-rows.ts';
import type { Foundation } from './foundation.ts';

export interface BillingAudit {
  /** What `--json` prints (decisions, Running it). */
  readonly report: {
    readonly partner_id: string;
    readonly months: readonly MonthOfLedger[];
    readonly units: number;
    readonly differences: readonly Difference[];
  };
  /** What an auditor should know beside it, a sentence each. */
  readonly notes: readonly string[];
}

export type AuditParts = Pick<Foundation, 'store' | 'db' | 'progress' | 'processed'>;

export interface AuditOptions {
  readonly partnerId: string;
  /** `YYYY-MM`: the one month that the report lists. All are checked. */
  readonly month?: string;
  /** A digest noted earlier. */
  readonly anchor?: string;
  /** How long ledger and read model may take to come to the log's head, milliseconds. */
  readonly patienceMs: number;
}

/** In an empty log. */
const NOWHERE = -1n as Position;

/**
 * Replays a partner's ledger from the store, up to the log's head as it is now, and holds it against the receipts still
 * kept, the read model and what usage is told from. What completes meanwhile is left to the next audit.
 */
export const auditBilling = async (
  { store, db, progress, processed }: AuditParts,
  { partnerId, month, anchor, patienceMs }: AuditOptions,
): Promise<BillingAudit> => {
  const notes: string[] = [];
  const head = (await store.head()) ?? NOWHERE;
  if (!(await processed.reached([BILLING_PROCESSOR], head, patienceMs))) {
    notes.push(`processor ${BILLING_PROCESSOR} is behind: what it has not come to shows as missing_entry`);
  }
  // What was completed by then has its entry by now, and that is further on in the log.
  const billed = (await store.head()) ?? head;
  if (!(await progress.reached([revealUnits.name], billed, patienceMs))) {
    notes.push(
      `projection ${revealUnits.name} is behind: what it has not come to shows as read_model_mismatch`,
    );
  }

  const chain = checkChain(partnerId, await readLedger(store, partnerId, billed));
  const receipts = await readReceipts(store, partnerId, head);
  const against = checkReceipts(partnerId, chain, receipts, head);
  const last = chain.entries.at(-1)?.position ?? head;
  const upTo = last > head ? last : head;
  const rows = await readUnitRows(db, partnerId, upTo);
  const usage = await readUsage(db, partnerId, chain.entries, rows, upTo);

  notes.push(
    `${chain.entries.length} entries: ${against.checked} held against their receipts; of ${against.gone} the receipts ` +
      'are no longer kept, so that numbering, digests and read model alone speak for them',
  );
  const months = monthsOf(chain.entries, month);
  return {
    report: {
      partner_id: partnerId,
      months,
      units: months.reduce((sum, { units }) => sum + units, 0),
      differences: [
        ...chain.differences,
        ...receipts.differences,
        ...against.differences,
        ...checkReadModel(partnerId, chain.entries, rows),
        ...checkUsage(partnerId, chain.entries, usage),
        ...(anchor === undefined ? [] : checkAnchor(partnerId, chain.entries, anchor)),
      ],
    },
    notes,
  };
};

/** What usage is told from, asked as `GET /v1/usage` asks: by key (and user) and hour. */
const readUsage = async (
  db: DatabasePool,
  partnerId: string,
  entries: readonly Entry[],
  rows: readonly UnitRow[],
  upTo: bigint,
): Promise<UnitSum[]> => {
  const all = [...entries, ...rows];
  // PostgreSQL has no year 0; an entry that claims it differs from usage.
  const months = new Set(
    all.map(({ completed_at }) => monthOf(completed_at)).filter((month) => month > '0001'),
  );
  const keys = new Set(all.flatMap(({ key_id }) => key_id ?? []));
  const users = new Set(all.flatMap(({ user_id }) => user_id ?? []));
  const whose = [
    ...[...keys].map((key_id) => ({ who: keyLabel(key_id), of: { key_id } })),
    ...[...users].map((user_id) => ({ who: userLabel(user_id), of: { user_id } })),
  ];
  const sums: UnitSum[] = [];
  for (const month of months) {
    sums.push({ month, who: ALL, ...(await countUnits(db, partnerId, month, upTo)) });
    for (const { who, of } of whose) {
      const hours = await readRevealHours(db, of, monthStart(month), monthEnd(month), upTo);
      const completed = hours.reduce((sum, hour) => sum + hour.completed_reveals, 0);
      const units = hours.reduce((sum, hour) => sum + hour.billable_reveals, 0);
      sums.push({ month, who, completed, units });
    }
  }
  return sums;
};
