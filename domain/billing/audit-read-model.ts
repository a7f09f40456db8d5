import { type Difference, type Entry, monthOf } from './audit-chain.ts';
import { billingStream } from './events.ts';

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
export const checkReadModel = (
  partnerId: string,
  entries: readonly Entry[],
  rows: readonly UnitRow[],
): Difference[] => {
  const differences: Difference[] = [];
  const differ = (revision: number | null, reveal_id: string, detail: string): void =>
    void differences.push({
      kind: 'read_model_mismatch',
      stream: billingStream(partnerId),
      revision,
      reveal_id,
      detail,
    });
  const byReveal = new Map(rows.map((row) => [row.reveal_id, row]));
  for (const entry of entries) {
    const { number, reveal_id, completed_at } = entry;
    const row = byReveal.get(reveal_id);
    byReveal.delete(reveal_id);
    if (!row) {
      differ(number, reveal_id, 'the read model has no such reveal');
      continue;
    }
    for (const field of FIELDS) {
      if (row[field] !== entry[field]) {
        differ(number, reveal_id, `${field} is ${entry[field]}, in the read model ${row[field]}`);
      }
    }
    if (Date.parse(row.completed_at) !== Date.parse(completed_at)) {
      differ(number, reveal_id, `completed_at is ${completed_at}, in the read model ${row.completed_at}`);
    }
    if (row.ledger_number !== number) {
      differ(number, reveal_id, `the read model calls it entry ${row.ledger_number}`);
    }
  }
  for (const { reveal_id, ledger_number, units } of byReveal.values()) {
    differ(ledger_number, reveal_id, `the read model has it with ${units} units, the ledger does not`);
  }
  return differences;
};

/** Completed reveals and their units in a month (`YYYY-MM`), of a key, a user, or all of the partner. */
export interface UnitSum {
  readonly month: string;
  readonly who: string;
  readonly completed: number;
  readonly units: number;
}

export const ALL = 'all';
/** Labels of a sum's owner. */
export const keyLabel = (keyId: string): string => `key ${keyId}`;
export const userLabel = (userId: string): string => `user ${userId}`;

const sumsOf = (entries: readonly Entry[]): UnitSum[] => {
  const sums = new Map<string, UnitSum>();
  for (const { completed_at, key_id, user_id, units } of entries) {
    const month = monthOf(completed_at);
    const whose = [ALL];
    if (key_id !== null) whose.push(keyLabel(key_id));
    if (user_id !== null) whose.push(userLabel(user_id));
    for (const who of whose) {
      const id = `${month} ${who}`;
      const { completed, units: before } = sums.get(id) ?? { completed: 0, units: 0 };
      sums.set(id, { month, who, completed: completed + 1, units: before + units });
    }
  }
  return [...sums.values()];
};

/** Compares the ledger's sums with those of usage. */
export const checkUsage = (
  partnerId: string,
  entries: readonly Entry[],
  usage: readonly UnitSum[],
): Difference[] => {
  const byId = (sums: readonly UnitSum[]) => new Map(sums.map((sum) => [`${sum.month} ${sum.who}`, sum]));
  const [usageTotals, ledgerTotals] = [byId(usage), byId(sumsOf(entries))];
  return [...new Set([...ledgerTotals.keys(), ...usageTotals.keys()])].sort().flatMap((id): Difference[] => {
    const [usages, ledgers] = [text(usageTotals.get(id)), text(ledgerTotals.get(id))];
    if (usages === ledgers) return [];
    const detail = `${id}: ${ledgers} in the ledger, ${usages} in usage`;
    return [
      { kind: 'usage_mismatch', stream: billingStream(partnerId), revision: null, reveal_id: null, detail },
    ];
  });
};

const text = (sum: UnitSum | undefined): string =>
  `${sum?.units ?? 0} units of ${sum?.completed ?? 0} reveals`;
