/** The metrics that this process counts itself; docs/runbook.md documents each name. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { FUTURE_TIME_MARKS, type FutureTimeMark } from '../clock/clock.ts';

export type Metrics = ReturnType<typeof createMetrics>;

/** The outcome of a question to a provider: the match type of its answer, `unknown` (it knows nothing), or no answer. */
const PROVIDER_OUTCOMES = ['company', 'isp', 'unclassified', 'unknown', 'failed', 'not_asked'] as const;
export type ProviderOutcome = (typeof PROVIDER_OUTCOMES)[number];

/** Sampling interval of the event loop's lag, which the figures of the lag include; each sample wakes an idle process. */
export const LAG_SAMPLE_MS = 1_000;

/** Creates the metrics of a process. */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({
    register: registry,
    prefix: 'doorplate_',
    eventLoopMonitoringPrecision: LAG_SAMPLE_MS,
  });
  // Gauges named as counters, against Prometheus' rules: sums of those by type, which stay.
  for (const what of ['handles', 'requests', 'resources'])
    registry.removeSingleMetric(`doorplate_nodejs_active_${what}_total`);
  const makers = makersOf(registry);
  const { counter, histogram } = makers;
  return {
    registry,
    /** Seconds from a request's head to its response. */
    answers: histogram(
      'doorplate_http_answer_seconds',
      'Time from a request to its answer, by route and status.',
      [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
      ['route', 'status'],
    ),
    attempts: counter('doorplate_enrichment_attempts_total', 'Enrichment attempts by outcome.', {
      outcome: ['completed', 'failed'],
    }),
    captures: captureCounter(makers),
    signals: counter('doorplate_signals_total', 'Clues that were sent in, by what became of them.', {
      outcome: ['accepted', 'duplicate'],
    }),
    cluesUnavailable: counter(
      'doorplate_company_signals_unavailable_total',
      'Lookup answers of enabled keys that went without their clues.',
    ),
    domainChecks: counter('doorplate_domain_looks_total', 'Looks where custom domains point, by outcome.', {
      outcome: ['points_here', 'dns_timeout', 'dns_error'],
    }),
    deliveries: deliveryMetrics(makers),
    providers: providerMetrics(makers),
    ...progressMetrics(makers),
  };
}

type Makers = ReturnType<typeof makersOf>;

function makersOf(registry: Registry) {
  const registers = [registry];
  return {
    gauge: <Label extends string = never>(name: string, help: string, ...labelNames: Label[]) =>
      new Gauge({ name, help, labelNames, registers }),
    histogram: <Label extends string = never>(
      name: string,
      help: string,
      buckets: number[],
      labelNames: Label[] = [],
    ) => new Histogram({ name, help, labelNames, buckets, registers }),
    /**
     * `known`: the labels, each with the values for which zeros are exported from the start, because a rate would otherwise
     * miss the first failure.
     */
    counter: <Label extends string = never>(
      name: string,
      help: string,
      known = {} as Readonly<Record<Label, readonly string[]>>,
    ): Counter<Label> => {
      const labelNames = Object.keys(known) as Label[];
      const made = new Counter({ name, help, labelNames, registers });
      for (const label of labelNames) {
        for (const value of known[label]) made.inc({ [label]: value } as Record<Label, string>, 0);
      }
      return made;
    },
  };
}

/** The refusals that a wrong setting causes, of a proxy or of a tracker. */
const CAPTURE_REFUSALS = [
  'untrusted_collector',
  'tracker_origin_denied',
  'tracker_not_found',
  'tracking_capacity',
] as const;

/** Returns the counter of captures; `reason` is the error code of a refused one, and absent otherwise. */
function captureCounter({ counter }: Makers): Counter<'outcome' | 'reason'> {
  const captures = counter('doorplate_captures_total', 'Requests of pixels by what became of them.', {
    outcome: ['session', 'visit', 'retry', 'crawler', 'prefetch'],
    reason: [],
  });
  for (const reason of CAPTURE_REFUSALS) captures.inc({ outcome: 'refused', reason }, 0);
  return captures;
}

function progressMetrics({ gauge, counter }: Makers) {
  const lag = gauge(
    'doorplate_projection_lag_seconds',
    'Age of the newest event when this projection applied it.',
    'name',
  );
  const blockedRows = gauge(
    'doorplate_expiry_blocked_rows',
    'Sessions and reveals that expired more than ten minutes ago and are not deleted yet.',
    'name',
  );
  const blockedSeconds = gauge(
    'doorplate_expiry_blocked_seconds',
    'Time since the oldest of them expired.',
    'name',
  );
  const futureTimes = counter(
    'doorplate_recorded_ahead_total',
    'Recorded times that lay more than a minute ahead of the clock and were treated as now.',
    { mark: FUTURE_TIME_MARKS },
  );
  return {
    stopped: gauge('doorplate_stopped', '1 for a projection or processor that an event has stopped.', 'name'),
    futureTimes: (mark: FutureTimeMark, by: number): void => futureTimes.inc({ mark }, by),
    /** Records items that are overdue for deletion, and the age of the oldest. */
    expiryBlocked: (name: string, rows: number, seconds: number): void => {
      blockedRows.set({ name }, rows);
      blockedSeconds.set({ name }, seconds);
    },
    /** Resets the expiry gauges, because another process deletes now. */
    expiryNotMine: (): void => {
      blockedRows.reset();
      blockedSeconds.reset();
    },
    /** Records that projections have applied events up to this time (ISO 8601; null: the batch had none). */
    applied: (names: readonly string[], lastEventAt: string | null, now: number): void => {
      if (lastEventAt === null) return;
      const seconds = Math.max(0, now - Date.parse(lastEventAt)) / 1_000;
      for (const name of names) lag.set({ name }, seconds);
    },
  };
}

function deliveryMetrics({ gauge, counter, histogram }: Makers) {
  const starts = counter('doorplate_webhook_starts_total', 'Attempts at deliveries that were begun.');
  const outcomes = counter('doorplate_webhook_attempts_total', 'Attempts at deliveries by outcome.', {
    outcome: ['delivered'],
  });
  const givenUp = counter(
    'doorplate_webhook_given_up_total',
    'Deliveries that failed for good: no attempt is left, or no time.',
  );
  const lag = histogram(
    'doorplate_webhook_first_attempt_seconds',
    'Time from an event to the first attempt at its delivery.',
    [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300],
  );
  const oldest = gauge(
    'doorplate_webhook_oldest_due_seconds',
    'For how long the oldest delivery is due that neither a pause nor a breaker holds back.',
  );
  const endpoints = gauge(
    'doorplate_webhook_endpoints',
    'Endpoints with pending deliveries, by whether they take them.',
    'state',
  );
  return {
    /** `lagMs`: milliseconds since the event was created; null if this is not the first attempt. */
    started: (lagMs: number | null): void => {
      starts.inc();
      if (lagMs !== null) lag.observe(lagMs / 1_000);
    },
    /** `error` null: delivered. `state` failed: no attempt is left. */
    ended: (error: string | null, state: string): void => {
      outcomes.inc({ outcome: error ?? 'delivered' });
      if (state === 'failed') givenUp.inc();
    },
    /** Records the state of endpoints with pending deliveries, over all processes. */
    watched: (now: { accepting: number; breakerOpen: number; paused: number; oldestDueMs: number }): void => {
      endpoints.set({ state: 'taking' }, now.accepting);
      endpoints.set({ state: 'held' }, now.breakerOpen);
      endpoints.set({ state: 'paused' }, now.paused);
      oldest.set(now.oldestDueMs / 1_000);
    },
  };
}

function providerMetrics({ gauge, counter, histogram }: Makers) {
  const calls = counter(
    'doorplate_provider_calls_total',
    'Questions to providers by outcome: the match type of the answer, unknown, failed, or not_asked.',
    { provider: [], outcome: [] },
  );
  const seconds = histogram(
    'doorplate_provider_seconds',
    'Time from a question to a provider to its answer or failure, with the wait for its rate.',
    [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    ['provider'],
  );
  const taken = counter('doorplate_provider_taken_total', "Results whose company is this provider's.", {
    provider: [],
  });
  const reloads = counter(
    'doorplate_provider_reloads_total',
    'Changed files of providers that were read again, by outcome.',
    { provider: [], outcome: [] },
  );
  const breaker = gauge(
    'doorplate_provider_breaker_open',
    '1 while this process holds calls back from a provider that keeps failing.',
    'provider',
  );
  return {
    /** Exports zeros for these providers. */
    start: (providers: readonly string[]): void => {
      for (const provider of providers) {
        for (const outcome of PROVIDER_OUTCOMES) calls.inc({ provider, outcome }, 0);
        for (const outcome of ['reloaded', 'failed']) reloads.inc({ provider, outcome }, 0);
        seconds.zero({ provider });
        taken.inc({ provider }, 0);
        breaker.set({ provider }, 0);
      }
    },
    /** Records that a provider was asked, or held back. `ms`: duration of the call. */
    asked: (provider: string, outcome: ProviderOutcome, ms: number): void => {
      calls.inc({ provider, outcome });
      if (outcome !== 'not_asked') seconds.observe({ provider }, ms / 1_000);
    },
    taken: (provider: string): void => taken.inc({ provider }),
    reloaded: (provider: string, outcome: 'reloaded' | 'failed'): void => reloads.inc({ provider, outcome }),
    breaker: (provider: string, isOpen: boolean): void => breaker.set({ provider }, isOpen ? 1 : 0),
  };
}
