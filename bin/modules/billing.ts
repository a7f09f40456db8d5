import { billCompletedReveals } from '../../processors/billing/bill-completed-reveals.ts';
import type { WorkerContext, WorkerModule } from '../worker-context.ts';

export const billingWork = ({ runtime: { store, clock } }: WorkerContext): WorkerModule => ({
  processors: { visits: [billCompletedReveals(store, clock)] },
});
