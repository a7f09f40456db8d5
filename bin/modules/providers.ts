import { utcDay } from '../../domain/kernel/time.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { RateLimiter } from '../../platform/rate-limit.ts';
import type { ProviderNotes } from '../../processors/lookup/attempt-enrichments.ts';
import { buildChain, type Chain } from '../../processors/lookup/providers/chain.ts';
import { takeFromBudget } from '../../processors/lookup/providers/provider-counts.ts';
import type { Runtime } from '../runtime.ts';

export interface Providers {
  readonly chain: Chain;
  readonly notes: ProviderNotes;
  close(): Promise<void>;
}

/** A provider that keeps failing is called once in this many retry delays. */
const BREAKER_DELAYS = 2;

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
      breakerOpenMs: BREAKER_DELAYS * config.RETRY_BASE_SECONDS * 1_000,
      onBreaker: (provider, isOpen) => metrics?.providers.breaker(provider, isOpen),
    },
    onReload: (provider, outcome) => metrics?.providers.reloaded(provider, outcome),
  });

/** Opens the providers of the enrichment attempts and counts what they answer. `makeChain`: opens them. */
export const openProviders = async (
  runtime: Runtime,
  limiter: RateLimiter,
  metrics: Metrics,
  makeChain: typeof openChain = openChain,
): Promise<Providers> => {
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
};
