import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';

export interface Metrics {
  readonly registry: Registry;
  readonly attempts: Counter<'outcome'>;
  readonly stopped: Gauge<'name'>;
  /** Projections have applied all up to an event of this time (ISO 8601; null: none in the batch). */
  applied(names: readonly string[], lastEventAt: string | null, now: number): void;
}

/** What `/metrics` shows. Each name is documented in docs/operations.md. */
export const createMetrics = (): Metrics => {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: 'doorplate_' });
  const lag = new Gauge({
    name: 'doorplate_projection_lag_seconds',
    help: 'Age of the newest event when this projection applied it.',
    labelNames: ['name'],
    registers: [registry],
  });
  return {
    registry,
    attempts: new Counter({
      name: 'doorplate_enrichment_attempts_total',
      help: 'Enrichment attempts by outcome.',
      labelNames: ['outcome'],
      registers: [registry],
    }),
    stopped: new Gauge({
      name: 'doorplate_stopped',
      help: '1 for a projection or processor that an event has stopped.',
      labelNames: ['name'],
      registers: [registry],
    }),
    applied: (names, lastEventAt, now) => {
      if (lastEventAt === null) return;
      const seconds = Math.max(0, now - Date.parse(lastEventAt)) / 1_000;
      for (const name of names) lag.set({ name }, seconds);
    },
  };
};
