import { Registry } from 'prom-client';
import { expect, it, vi } from 'vitest';
import { createStateMetrics, type StateOfThings } from '../../platform/telemetry/state-metrics.ts';

const SCRAPE = 15_000;
const calm: StateOfThings = {
  postgresql: true,
  eventStore: true,
  head: 0n,
  positions: [],
  leads: [],
  queueFill: 0,
};

it('a projection that has been stopped for days does not hide another that falls behind', async () => {
  let now = 0;
  let state = calm;
  const registry = new Registry();
  createStateMetrics(
    registry,
    async () => state,
    () => now,
  );
  // Queries are shared for a second of real time.
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  const scrape = (head: bigint, other: bigint): Promise<string> => {
    now += SCRAPE;
    const positions = [
      { name: 'stopped', position: 1n },
      { name: 'other', position: other },
    ];
    state = { ...calm, head, positions };
    return registry.metrics();
  };
  const scrapes = (2 * 86_400_000) / SCRAPE;
  for (let n = 2; n <= scrapes; n += 1) await scrape(BigInt(n), BigInt(n));
  const atOnce = await scrape(BigInt(scrapes + 1), BigInt(scrapes));
  expect(atOnce).toContain('doorplate_behind_seconds{name="other"} 0');
  const stays = BigInt(scrapes);
  for (let n = scrapes + 2; n < scrapes + 100; n += 1) await scrape(BigInt(n), stays);
  const metrics = await scrape(BigInt(scrapes + 100), stays);
  vi.restoreAllMocks();
  const behind = (name: string) =>
    Number(new RegExp(`behind_seconds\\{name="${name}"\\} (\\S+)`).exec(metrics)?.[1]);
  expect(behind('stopped')).toBe(((scrapes + 98) * SCRAPE) / 1_000);
  expect(behind('other')).toBeGreaterThan(0.5 * 99 * (SCRAPE / 1_000));
  expect(behind('other')).toBeLessThanOrEqual(99 * (SCRAPE / 1_000));
});
