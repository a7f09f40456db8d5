import { readLastAnchor } from '../../commands/billing/keep-anchor.ts';
import { readEntries, readLastEntry } from '../../commands/billing/read-for-audit.ts';
import type { Route } from '../../http/contract/route.ts';
import { BILLING, billCompletedReveals } from '../../processors/billing/bill-completed-reveals.ts';
import { createDailyAnchors } from '../../processors/billing/daily-anchors.ts';
import { recordAuditDifferences } from '../../processors/operations/operator-alerts.ts';
import { getLedgerRoute } from '../../read-api/billing/get-ledger.ts';
import type { ApiContext } from '../api-context.ts';
import type { Runtime } from '../runtime.ts';
import type { WorkerContext, WorkerModule } from '../worker-context.ts';

const BILLED_MS = 2_000;

export const billingRoutes = ({ runtime, waitForHead }: ApiContext): Route[] => {
  const { db, store, cursors, processed } = runtime;
  return [
    getLedgerRoute({
      db,
      cursors,
      waitForHead: waitForHead(['reveal-units']),
      waitForBilling: async () => {
        await processed.reached([BILLING.name], await store.head(), BILLED_MS);
      },
      entries: (partnerId, numbers) => readEntries(store, partnerId, numbers),
      lastEntry: (partnerId) => readLastEntry(store, partnerId),
      lastAnchor: (partnerId) => readLastAnchor(store, partnerId),
    }),
  ];
};

export const billingWork = ({ runtime }: WorkerContext): WorkerModule => ({
  processors: { visits: [billCompletedReveals(runtime.store, runtime.clock)] },
  jobs: () => [['41 * * * * *', createDailyAnchors({ ...runtime, onDifference: tellOfDifference(runtime) })]],
});

const tellOfDifference =
  ({ config, pool, clock }: Runtime) =>
  async (partnerId: string, day: string): Promise<void> => {
    if (config.OPERATOR_WEBHOOK_URL === undefined) return;
    await recordAuditDifferences(pool, partnerId, [{ kind: 'chain', detail: day }], clock.now());
  };
