import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** The outcome of a question to a provider: the match type of its answer, `unknown` (it knows nothing), or no answer. */
export const PROVIDER_OUTCOMES = [
  'company',
  'isp',
  'unclassified',
  'unknown',
  'failed',
  'not_asked',
] as const;
export type ProviderOutcome = (typeof PROVIDER_OUTCOMES)[number];

export interface ProviderMetrics {
  /** Exports zeros for these providers, because a rate would otherwise miss the first failure. */
  start(providers: readonly string[]): void;
  /** Records that a provider was asked, or held back. `ms`: duration of the call. */
  asked(provider: string, outcome: ProviderOutcome, ms: number): void;
  /** Records that a provider's company became the result. */
  taken(provider: string): void;
  reloaded(provider: string, outcome: 'reloaded' | 'failed'): void;
  breaker(provider: string, isOpen: boolean): void;
}

/** Creates the metrics of providers; docs/operations.md documents each name. */
export const createProviderMetrics = (registry: Registry): ProviderMetrics => {
  const registers = [registry];
  const calls = new Counter({
    name: 'doorplate_provider_calls_total',
    help: 'Questions to providers by outcome: the match type of the answer, unknown, failed, or not_asked.',
    labelNames: ['provider', 'outcome'],
    registers,
  });
  const seconds = new Histogram({
    name: 'doorplate_provider_seconds',
    help: 'Time from a question to a provider to its answer or failure, with the wait for its rate.',
    labelNames: ['provider'],
    buckets: [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  const taken = new Counter({
    name: 'doorplate_provider_taken_total',
    help: "Results whose company is this provider's.",
    labelNames: ['provider'],
    registers,
  });
  const reloads = new Counter({
    name: 'doorplate_provider_reloads_total',
    help: 'Changed files of providers that were read again, by outcome.',
    labelNames: ['provider', 'outcome'],
    registers,
  });
  const breaker = new Gauge({
    name: 'doorplate_provider_breaker_open',
    help: '1 while this process holds calls back from a provider that keeps failing.',
    labelNames: ['provider'],
    registers,
  });
  return {
    start: (providers) => {
      for (const provider of providers) {
        for (const outcome of PROVIDER_OUTCOMES) calls.inc({ provider, outcome }, 0);
        for (const outcome of ['reloaded', 'failed']) reloads.inc({ provider, outcome }, 0);
        seconds.zero({ provider });
        taken.inc({ provider }, 0);
        breaker.set({ provider }, 0);
      }
    },
    asked: (provider, outcome, ms) => {
      calls.inc({ provider, outcome });
      if (outcome !== 'not_asked') seconds.observe({ provider }, ms / 1_000);
    },
    taken: (provider) => taken.inc({ provider }),
    reloaded: (provider, outcome) => reloads.inc({ provider, outcome }),
    breaker: (provider, isOpen) => breaker.set({ provider }, isOpen ? 1 : 0),
  };
};
