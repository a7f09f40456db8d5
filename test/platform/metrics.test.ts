import { expect, it } from 'vitest';
import { createMetrics } from '../../platform/telemetry/metrics.ts';

it('names every counter, and nothing else, with _total, as promtool checks', async () => {
  const metrics = await createMetrics().registry.getMetricsAsJSON();
  const wrong = metrics.filter(({ name, type }) => name.endsWith('_total') !== (String(type) === 'counter'));
  expect(wrong.map(({ name }) => name)).toEqual([]);
});
