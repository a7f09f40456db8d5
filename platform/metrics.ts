import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { AHEAD_MARKS, type AheadMark } from './ahead.ts';
import { createDeliveryMetrics, type DeliveryMetrics } from './delivery-metrics.ts';
import { createProviderMetrics, type ProviderMetrics } from './provider-metrics.ts';

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
  readonly ahead: (mark: AheadMark, by: number) => void;
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
  for (const mark of AHEAD_MARKS) ahead.inc({ mark }, 0);
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
