import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { FUTURE_TIME_MARKS, type FutureTimeMark } from '../clock/clock.ts';

/** The outcome of a question to a provider: the match type of its answer, `unknown` (it knows nothing), or no answer. */
const PROVIDER_OUTCOMES = ['company', 'isp', 'unclassified', 'unknown', 'failed', 'not_asked'] as const;
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
const createProviderMetrics = (registry: Registry): ProviderMetrics => {
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

export interface DeliveryMetrics {
  /** Records the start of an attempt. `lagMs`: milliseconds since its event was created; null if not the first attempt. */
  started(lagMs: number | null): void;
  /** Records the end of an attempt. `error` null: delivered. `state` failed: no attempt is left. */
  ended(error: string | null, state: string): void;
  /** Records the state of endpoints with pending deliveries, over all processes. */
  watched(now: {
    readonly accepting: number;
    readonly breakerOpen: number;
    readonly paused: number;
    readonly oldestDueMs: number;
  }): void;
}

/** Creates the metrics of deliveries; docs/operations.md documents each name. */
const createDeliveryMetrics = (registry: Registry): DeliveryMetrics => {
  const registers = [registry];
  const starts = new Counter({
    name: 'doorplate_webhook_starts_total',
    help: 'Attempts at deliveries that were begun.',
    registers,
  });
  const outcomes = new Counter({
    name: 'doorplate_webhook_attempts_total',
    help: 'Attempts at deliveries by outcome.',
    labelNames: ['outcome'],
    registers,
  });
  outcomes.inc({ outcome: 'delivered' }, 0);
  const givenUp = new Counter({
    name: 'doorplate_webhook_given_up_total',
    help: 'Deliveries that failed for good: no attempt is left, or no time.',
    registers,
  });
  const lag = new Histogram({
    name: 'doorplate_webhook_first_attempt_seconds',
    help: 'Time from an event to the first attempt at its delivery.',
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300],
    registers,
  });
  const oldest = new Gauge({
    name: 'doorplate_webhook_oldest_due_seconds',
    help: 'For how long the oldest delivery is due that neither a pause nor a breaker holds back.',
    registers,
  });
  const endpoints = new Gauge({
    name: 'doorplate_webhook_endpoints',
    help: 'Endpoints with pending deliveries, by whether they take them.',
    labelNames: ['state'],
    registers,
  });
  return {
    started: (lagMs) => {
      starts.inc();
      if (lagMs !== null) lag.observe(lagMs / 1_000);
    },
    ended: (error, state) => {
      outcomes.inc({ outcome: error ?? 'delivered' });
      if (state === 'failed') givenUp.inc();
    },
    watched: ({ accepting, breakerOpen, paused, oldestDueMs }) => {
      endpoints.set({ state: 'taking' }, accepting);
      endpoints.set({ state: 'held' }, breakerOpen);
      endpoints.set({ state: 'paused' }, paused);
      oldest.set(oldestDueMs / 1_000);
    },
  };
};

export interface Metrics {
  readonly registry: Registry;
  /** Seconds from a request's head to its response, by route and status. */
  readonly answers: Histogram<'route' | 'status'>;
  readonly attempts: Counter<'outcome'>;
  readonly captures: Counter<'outcome'>;
  readonly signals: Counter<'outcome'>;
  readonly cluesUnavailable: Counter;
  readonly deliveries: DeliveryMetrics;
  readonly providers: ProviderMetrics;
  readonly domainChecks: Counter<'outcome'>;
  readonly stopped: Gauge<'name'>;
  /** Records items that are overdue for deletion, and the age of the oldest in seconds. */
  readonly expiryBlocked: (name: string, rows: number, seconds: number) => void;
  /** Counts timestamps that lie ahead of the clock and were treated as now. */
  readonly ahead: (mark: FutureTimeMark, by: number) => void;
  /** Resets the expiry gauges, because another process deletes now. */
  readonly expiryNotMine: () => void;
  /** Records that projections have applied events up to this time (ISO 8601; null: the batch had none). */
  applied(names: readonly string[], lastEventAt: string | null, now: number): void;
}

/** Sampling interval of the event loop's lag; each sample wakes an idle process. */
const LAG_SAMPLE_MS = 50;

/** Creates the metrics; docs/operations.md documents each name. */
export const createMetrics = (): Metrics => {
  const registry = new Registry();
  collectDefaultMetrics({
    register: registry,
    prefix: 'doorplate_',
    eventLoopMonitoringPrecision: LAG_SAMPLE_MS,
  });
  const progress = createProgressMetrics(registry);
  return {
    registry,
    answers: new Histogram({
      name: 'doorplate_http_answer_seconds',
      help: 'Time from a request to its answer, by route and status.',
      labelNames: ['route', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
      registers: [registry],
    }),
    attempts: byOutcome(registry, 'doorplate_enrichment_attempts_total', 'Enrichment attempts by outcome.', [
      'completed',
      'failed',
    ]),
    captures: byOutcome(registry, 'doorplate_captures_total', 'Requests of pixels by what became of them.', [
      'session',
      'visit',
      'retry',
      'crawler',
      'prefetch',
      'refused',
    ]),
    signals: byOutcome(
      registry,
      'doorplate_signals_total',
      'Clues that were sent in, by what became of them.',
      ['accepted', 'duplicate'],
    ),
    cluesUnavailable: new Counter({
      name: 'doorplate_company_signals_unavailable_total',
      help: 'Lookup answers of enabled keys that went without their clues.',
      registers: [registry],
    }),
    deliveries: createDeliveryMetrics(registry),
    providers: createProviderMetrics(registry),
    domainChecks: byOutcome(
      registry,
      'doorplate_domain_looks_total',
      'Looks where custom domains point, by outcome.',
      ['points_here', 'dns_timeout', 'dns_error'],
    ),
    stopped: new Gauge({
      name: 'doorplate_stopped',
      help: '1 for a projection or processor that an event has stopped.',
      labelNames: ['name'],
      registers: [registry],
    }),
    ...progress,
  };
};

type ProgressMetrics = Pick<Metrics, 'expiryBlocked' | 'ahead' | 'expiryNotMine' | 'applied'>;

/** Creates the metrics of the projections' lag, of blocked deletions and of clocks that were ahead. */
const createProgressMetrics = (registry: Registry): ProgressMetrics => {
  const lag = new Gauge({
    name: 'doorplate_projection_lag_seconds',
    help: 'Age of the newest event when this projection applied it.',
    labelNames: ['name'],
    registers: [registry],
  });
  const blockedRows = new Gauge({
    name: 'doorplate_expiry_blocked_rows',
    help: 'Sessions and reveals that expired more than ten minutes ago and are not deleted yet.',
    labelNames: ['name'],
    registers: [registry],
  });
  const blockedSeconds = new Gauge({
    name: 'doorplate_expiry_blocked_seconds',
    help: 'Time since the oldest of them expired.',
    labelNames: ['name'],
    registers: [registry],
  });
  const ahead = new Counter({
    name: 'doorplate_recorded_ahead_total',
    help: 'Recorded times that lay more than a minute ahead of the clock and were treated as now.',
    labelNames: ['mark'],
    registers: [registry],
  });
  for (const mark of FUTURE_TIME_MARKS) ahead.inc({ mark }, 0);
  return {
    expiryBlocked: (name, rows, seconds) => {
      blockedRows.set({ name }, rows);
      blockedSeconds.set({ name }, seconds);
    },
    ahead: (mark, by) => ahead.inc({ mark }, by),
    expiryNotMine: () => {
      blockedRows.reset();
      blockedSeconds.reset();
    },
    applied: (names, lastEventAt, now) => {
      if (lastEventAt === null) return;
      const seconds = Math.max(0, now - Date.parse(lastEventAt)) / 1_000;
      for (const name of names) lag.set({ name }, seconds);
    },
  };
};

const byOutcome = (
  registry: Registry,
  name: string,
  help: string,
  outcomes: readonly string[],
): Counter<'outcome'> => {
  const counter = new Counter({ name, help, labelNames: ['outcome'] as const, registers: [registry] });
  // Exports zeros from the start, because a rate would otherwise miss the first failure.
  for (const outcome of outcomes) counter.inc({ outcome }, 0);
  return counter;
};
