import type { WorkCapacity } from '../../commands/lookup/submit-lookup.ts';
import { createWorkCapacity } from '../../commands/lookup/work-capacity.ts';
import { MINUTE } from '../../domain/kernel/time.ts';
import { createFairRate } from '../../platform/fair-rate.ts';
import { createKeptOut } from '../../platform/kept-out.ts';
import { sharedNotes } from '../../platform/kept-out-exchange.ts';
import type { RateLimiter } from '../../platform/rate-limit.ts';
import { countOutstanding } from '../../queries/lookup/lookups.ts';
import type { Runtime } from '../runtime.ts';

const PROJECTED_MS = 1_000;

/** Creates the admission of enrichments, shared by lookups and reveals of all partners. */
export const enrichmentCapacity = (
  { config, pool, progress, clock }: Runtime,
  limiter: RateLimiter,
): WorkCapacity =>
  createWorkCapacity({
    admitIntake: createFairRate({
      ceiling: config.ENRICHMENT_INTAKE_PER_MINUTE,
      keptOut: createKeptOut({
        windowMs: MINUTE,
        now: clock.now,
        shared: sharedNotes(pool, 'enrichments', MINUTE),
      }),
      admit: (name, ceiling) => limiter.admit(name, ceiling, MINUTE),
    }),
    countOutstanding: (except) => countOutstanding(pool, except),
    outstandingLimit: config.ENRICHMENT_OUTSTANDING,
    projected: (position) => progress.reached(['lookups'], position, PROJECTED_MS, 'patient'),
  });
