import type { Load } from '../load/load.ts';
import { readReceipt, sendReveal } from '../load/reveals.ts';
import type { Partner } from '../partners.ts';
import type { StormProcess } from '../processes.ts';
import type { Violations } from '../violations.ts';
import { forEachConcurrently, settle, untilAnswered } from './settle.ts';

const COMPLETED_MS = 90_000;

interface Audit {
  readonly months: readonly { readonly entries: number }[];
  readonly units: number;
  readonly differences: readonly unknown[];
}

/** Repeats every reveal, those of unknown outcome too: each key has one receipt from then on. */
export const repeatReveals = (load: Load, partner: Partner): Promise<void> =>
  forEachConcurrently(partner.reveals.keys(), async (key) => {
    await untilAnswered(`the reveal with the key ${key}`, () => sendReveal(load, partner, key));
  });

/** Every reveal completes, is in the ledger once, and has its unit there. */
export const checkReveals = async (load: Load, partner: Partner, process: StormProcess): Promise<void> => {
  const { partnerId } = partner;
  const ids = [...partner.reveals.values()].flatMap(({ revealId }) => revealId ?? []);
  const units = new Map<string, number>();
  const incomplete = await settle(async () => {
    await forEachConcurrently(
      ids.filter((id) => !units.has(id)),
      async (id) => {
        const receipt = await untilAnswered(`the receipt ${id}`, () => readReceipt(load, partner, id));
        if (receipt.status === 200) units.set(id, receipt.body.billable_units);
      },
    );
    return ids.filter((id) => !units.has(id));
  }, COMPLETED_MS);
  for (const id of incomplete) {
    load.violations.add('an acknowledged reveal completes', `partner ${partnerId}, reveal ${id}`);
  }
  if (new Set(ids).size !== ids.length) {
    load.violations.add('each Idempotency-Key has a reveal of its own', `partner ${partnerId}: ${ids}`);
  }
  const owed = [...units.values()].reduce((sum, one) => sum + one, 0);
  const ledger = await auditLedger(load.violations, partner, process);
  if (ledger === null) return;
  const entries = ledger.months.reduce((sum, month) => sum + month.entries, 0);
  if (entries !== units.size || ledger.units !== owed) {
    load.violations.add(
      'every completed reveal is billed once',
      `partner ${partnerId}: receipts ${units.size} with ${owed} units, ledger ${entries} with ${ledger.units}`,
    );
  }
};

/** @returns null: it finds a difference */
export const auditLedger = async (
  violations: Violations,
  { partnerId }: Partner,
  process: StormProcess,
): Promise<Audit | null> => {
  const { code, stdout, stderr } = await process.cli('audit', 'billing', '--partner', partnerId, '--json');
  const ledger = code === 2 ? null : (JSON.parse(stdout || 'null') as Audit | null);
  if (ledger === null || code !== 0 || ledger.differences.length > 0) {
    const detail = `partner ${partnerId}: exit code ${code}: ${stdout.slice(0, 2_000)}${stderr}`;
    violations.add('the audit of the ledger finds no difference', detail);
    return null;
  }
  return ledger;
};
