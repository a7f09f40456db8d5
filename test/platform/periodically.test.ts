import pino from 'pino';
import { afterEach, expect, it, vi } from 'vitest';
import { periodically } from '../../platform/clock/periodically.ts';
import { until } from '../support/until.ts';

const log = pino({ level: 'silent' });
afterEach(() => vi.useRealTimers());

it.each([
  ['set back', -1],
  ['set ahead', 1],
])('a clock that is %s by a year neither delays a job nor runs it more often', async (_how, sign) => {
  const ending = new AbortController();
  let runs = 0;
  const done = periodically(ending.signal, log, [
    [
      '* * * * * *',
      async () => {
        runs += 1;
      },
    ],
  ]);
  await until('a run', () => runs === 1);
  const begun = performance.now();
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + sign * 365 * 86_400_000 });
  const running = setInterval(() => vi.setSystemTime(Date.now() + 10), 10);
  await until('two more runs', () => runs >= 3);
  clearInterval(running);
  expect(runs).toBeLessThanOrEqual(2 + Math.ceil((performance.now() - begun) / 500));
  ending.abort();
  await done;
});
