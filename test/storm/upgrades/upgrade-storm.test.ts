import { expect, it } from 'vitest';
import { describe as described, printable } from '../report.ts';
import { runShortUpgradeStorm } from './upgrade-storm.ts';

it('every promise holds while processes are replaced by the next releases, and back', {
  timeout: 300_000,
}, async () => {
  const seed = Number(process.env.STORM_SEED ?? 1 + (Date.now() % 2 ** 31));
  const log: string[] = [];
  const result = await runShortUpgradeStorm({ minutes: 0, seed, say: (line) => void log.push(line) });
  expect(result.violations.map(described), `${log.join('\n')}\n${printable(result)}`).toEqual([]);
  for (const what of ['sessions', 'reveals', 'delivered events', 'events of a later version']) {
    expect(result.totals[what], what).toBeGreaterThan(0);
  }
});
