import pTimeout from 'p-timeout';
import { Gauge, type Registry } from 'prom-client';
import { MINUTE } from '../domain/kernel/time.ts';
import { shareFor } from '../platform/telemetry/state-metrics.ts';
import type { ConditionContext } from './condition.ts';
import { conditionsOf, findReported } from './conditions.ts';

/** Scrapes within this time share one reading. */
const SHARED_MS = 15_000;
const SHARED_SLOW_MS = 5 * MINUTE;
/** Prometheus gives up after ten seconds and would then lose all metrics. */
const LIMIT_MS = 2_000;

/** Adds the metric `doorplate_condition`: how many subjects each condition has. What cannot be read is left out. */
export function createConditionMetrics(registry: Registry, context: () => ConditionContext): void {
  const conditions = conditionsOf('metrics').map((one) => ({
    ...one,
    read: shareFor(one.isSlow ? SHARED_SLOW_MS : SHARED_MS, () =>
      findReported(one, context()).catch(() => null),
    ),
  }));
  new Gauge({
    name: 'doorplate_condition',
    help: 'Of how many subjects a condition holds (docs/runbook.md has each code); 0: none.',
    labelNames: ['code', 'severity'],
    registers: [registry],
    async collect() {
      const found = await Promise.all(
        conditions.map(({ read }) => pTimeout(read(), { milliseconds: LIMIT_MS, fallback: () => null })),
      );
      this.reset();
      for (const [nth, { code, severity }] of conditions.entries()) {
        const count = found[nth]?.length;
        if (count !== undefined && severity !== null) this.set({ code, severity }, count);
      }
    },
  });
}
