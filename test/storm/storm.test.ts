import { expect, it } from 'vitest';
import { describe as described, printable } from './report.ts';
import { runStorm } from './storm.ts';

const MINUTES = 2;
/** The start, the two minutes, the last fault, and the checks. */
const TEST_MS = 480_000;

it(
  'every promise holds through two minutes of faults on PostgreSQL',
  async () => {
    const seed = Number(process.env.STORM_SEED ?? 1 + (Date.now() % 2 ** 31));
    const log: string[] = [];
    const result = await runStorm({ minutes: MINUTES, seed, say: (line) => void log.push(line) });
    expect(result.violations.map(described), `${log.join('\n')}\n${printable(result)}`).toEqual([]);
    for (const what of ['submissions', 'sessions', 'reveals', 'delivered events']) {
      expect(result.totals[what], what).toBeGreaterThan(0);
    }
  },
  TEST_MS,
);
