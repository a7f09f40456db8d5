import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

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
export const createDeliveryMetrics = (registry: Registry): DeliveryMetrics => {
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
