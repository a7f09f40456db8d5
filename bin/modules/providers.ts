import type { WorkCapacity } from '../../commands/lookup/submit-lookup.ts';
import { createWorkCapacity } from '../../commands/lookup/work-capacity.ts';
import { MINUTE, utcDay } from '../../domain/kernel/time.ts';
import type { RateLimiter } from '../../platform/limits/rate-limit.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import type { ProviderNotes } from '../../processors/lookup/attempt-enrichments.ts';
import { buildChain, type Chain } from '../../processors/lookup/providers/chain.ts';
import { takeFromBudget } from '../../processors/lookup/providers/provider-counts.ts';
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

export interface Providers {
  readonly chain: Chain;
  readonly notes: ProviderNotes;
  close(): Promise<void>;
}

/** Retry delays in which a provider that keeps failing is called five times at most. */
const BREAKER_PERIOD_DELAYS = 2;

/** Opens the configured providers, limited over all processes. `metrics` null: a command. */
export const openChain = (
  { config, log, pool, clock }: Pick<Runtime, 'config' | 'log' | 'pool' | 'clock'>,
  limiter: RateLimiter,
  metrics: Metrics | null,
): Promise<Chain> =>
  buildChain(config, {
    log,
    guard: {
      admit: (provider, requestsPerSecond) => limiter.admit(`provider ${provider}`, requestsPerSecond),
      takeFromBudget: (provider, requestsPerDay) =>
        takeFromBudget(pool, provider, utcDay(clock.now()), requestsPerDay),
      today: () => utcDay(clock.now()),
      breakerPeriodMs: BREAKER_PERIOD_DELAYS * config.RETRY_BASE_SECONDS * 1_000,
      onBreaker: (provider, isOpen) => metrics?.providers.breaker(provider, isOpen),
    },
    onReload: (provider, outcome) => metrics?.providers.reloaded(provider, outcome),
  });

/** Opens the providers of the enrichment attempts and counts what they answer. `makeChain`: opens them. */
export async function openProviders(
  runtime: Runtime,
  limiter: RateLimiter,
  metrics: Metrics,
  makeChain: typeof openChain = openChain,
): Promise<Providers> {
  const chain = await makeChain(runtime, limiter, metrics);
  metrics.providers.start(chain.providers.map(({ name }) => name));
  const counts = runtime.providerCounts;
  return {
    chain,
    notes: {
      asked: (...asked) => {
        metrics.providers.asked(...asked);
        counts.asked(...asked);
      },
      taken: (provider) => {
        metrics.providers.taken(provider);
        counts.taken(provider);
      },
    },
    close: () => chain.close(),
  };
}
