import { Registry } from 'prom-client';
import { afterEach, expect, it, vi } from 'vitest';
import { watchState } from '../../bin/serve.ts';

afterEach(() => void vi.useRealTimers());

it('/metrics reports stores that do not answer, well before the scrape times out', async () => {
  vi.useFakeTimers();
  const never = () => new Promise<never>(() => undefined);
  const registry = new Registry();
  const stores = {
    pool: { query: never },
    store: { head: never },
    config: {},
    clock: { now: () => 0 },
    logStalls: () => 0,
  };
  watchState(stores as never, { processId: '', states: () => null }, { registry });
  let shown = '';
  void registry.metrics().then((text) => {
    shown = text;
  });
  await vi.advanceTimersByTimeAsync(3_000);
  expect(shown).toContain('doorplate_reachable{store="postgresql"} 0');
  expect(shown).toContain('doorplate_reachable{store="event store"} 0');
  expect(vi.getTimerCount()).toBe(0);
});
