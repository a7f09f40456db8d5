import type { WorkCapacity } from '../../commands/lookup/submit-lookup.ts';
import { createWorkCapacity } from '../../commands/lookup/work-capacity.ts';
import { MINUTE } from '../../domain/kernel/time.ts';
import type { RateLimiter } from '../../platform/rate-limit.ts';
import { countOutstanding } from '../../queries/lookup/lookups.ts';
import type { Runtime } from '../runtime.ts';

const PROJECTED_MS = 1_000;

/** Creates the admission of enrichments, shared by lookups and reveals of all partners. */
export function enrichmentCapacity(
  { config, pool, progress }: Pick<Runtime, 'config' | 'pool' | 'progress'>,
  limiter: RateLimiter,
): WorkCapacity {
  const intake = config.ENRICHMENT_INTAKE_PER_MINUTE;
  return createWorkCapacity({
    admitIntake: async (purpose) => {
      const beyondHalf =
        purpose === 'reveal'
          ? await limiter.admit('intake of reveals', Math.max(1, Math.floor(intake / 2)), MINUTE)
          : null;
      return beyondHalf ?? limiter.admit('intake', intake, MINUTE);
    },
    countOutstanding: (except) => countOutstanding(pool, except),
    outstandingLimit: config.ENRICHMENT_OUTSTANDING,
    projected: (position) => progress.reached(['lookups'], position, PROJECTED_MS, 'patient'),
  });
}
