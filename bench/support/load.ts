import { startChild } from './child.ts';
import type { LoadPlan, LoadResult } from './load-plan.ts';

/** Reads a meter that only goes up, in seconds of CPU. */
export type Meters = Readonly<Record<string, () => number>>;

export interface Loaded extends LoadResult {
  readonly perSecond: number;
  /** Microseconds of CPU an answer, by meter. */
  readonly cpuMicros: Readonly<Record<string, number>>;
  /** How much of one core the generator used: near 1, the rate is its own and not the server's. */
  readonly generatorCores: number;
}

const SLACK_MS = 20_000;

/**
 * Loads a server from a process of its own and reads the meters over the measured time.
 * @throws when an answer had another status than expected
 */
export const load = async (plan: LoadPlan, meters: Meters = {}): Promise<Loaded> => {
  const child = startChild('generate-load.ts', plan);
  try {
    await child.next<object>(plan.warmUpSeconds * 1_000 + SLACK_MS);
    const before = readAll(meters);
    const result = await child.next<LoadResult>(plan.seconds * 1_000 + SLACK_MS);
    const after = readAll(meters);
    if (Object.keys(result.unexpected).length > 0) {
      const others = JSON.stringify(result.unexpected);
      throw new Error(`of ${result.sent} answers these were not ${plan.expect}: ${others}`);
    }
    const micros = Object.keys(meters).map((name) => [
      name,
      (((after[name] ?? 0) - (before[name] ?? 0)) * 1e6) / result.answers,
    ]);
    return {
      ...result,
      perSecond: result.answers / result.seconds,
      cpuMicros: Object.fromEntries(micros),
      generatorCores: result.ownCpu / result.seconds,
    };
  } finally {
    await child.end();
  }
};

const readAll = (meters: Meters): Record<string, number> =>
  Object.fromEntries(Object.entries(meters).map(([name, read]) => [name, read()]));
