import { sweepRates } from '../platform/rate-limit.ts';
import { sweepClaims } from '../processors/claims.ts';
import { billingWork } from './modules/billing.ts';
import { domainWork } from './modules/domains.ts';
import { lookupWork } from './modules/lookup.ts';
import { revealWork } from './modules/reveals.ts';
import { usageWork } from './modules/usage.ts';
import { webhookWork } from './modules/webhooks.ts';
import { retentionJobs } from './retention.ts';
import type { WorkerContext, WorkerModule } from './worker-context.ts';

/** Returns the background work of every context. */
export const workerModules = (context: WorkerContext): WorkerModule[] => [
  lookupWork(context),
  revealWork(context),
  billingWork(context),
  usageWork(context),
  domainWork(context),
  webhookWork(context),
  sharedWork(context),
];

/** Tables and streams that several contexts share. */
const sharedWork = ({ runtime, metrics }: WorkerContext): WorkerModule => {
  const { clock, pool } = runtime;
  return {
    jobs: (signal) => [
      ['7 * * * *', () => sweepClaims(pool, clock.now())],
      ['* * * * *', () => sweepRates(pool, clock.now())],
      ...retentionJobs(runtime, metrics, signal),
    ],
  };
};
