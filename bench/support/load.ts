import { startChild } from './child.ts';
import type { LoadPlan, LoadResult } from './load-plan.ts';
import { openWrk } from './wrk.ts';

/** Reads a meter that only goes up, in seconds of CPU. */
export type Meters = Readonly<Record<string, () => number>>;

export interface Loaded extends LoadResult {
  readonly perSecond: number;
  /** Microseconds of CPU an answer, by meter. */
  readonly cpuMicros: Readonly<Record<string, number>>;
  /** The generator's share of one core: near 1, the rate is its own and not the server's. */
  readonly generatorCores: number;
}

const SLACK_MS = 20_000;

/**
 * Loads a server from a separate process and reads the meters over the measured time: with `wrk` at full speed, or
 * with a generator that spaces requests evenly at a given rate.
 * @throws NoGenerator; an Error when a response had another status than expected
 */
export const load = async (plan: LoadPlan, meters: Meters = {}): Promise<Loaded> => {
  const { result, before, after } = await (plan.rate === undefined ? asFastAsItGoes : paced)(plan, meters);
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
};

/** A note on the generators' share of CPU; with a warning where the generator was the limit. */
export const generatorNote = (...sides: readonly (readonly Loaded[])[]): string => {
  const cores = sides.map((some) => Math.max(...some.map((one) => one.generatorCores)));
  const limit = cores.some((one) => one > LIMITING_CORES) ? '; IT WAS THE LIMIT of a side above 0.9' : '';
  return `the load generator used at most ${cores.map((one) => one.toFixed(2)).join(' and ')} of a core${limit}`;
};
const LIMITING_CORES = 0.9;

interface Measured {
  readonly result: LoadResult;
  readonly before: Record<string, number>;
  readonly after: Record<string, number>;
}

const asFastAsItGoes = async (plan: LoadPlan, meters: Meters): Promise<Measured> => {
  const wrk = openWrk(plan);
  try {
    if (plan.warmUpSeconds > 0) await wrk.run(plan.warmUpSeconds);
    const before = readAll(meters);
    const result = await wrk.run(plan.seconds);
    return { result, before, after: readAll(meters) };
  } finally {
    wrk.close();
  }
};

const paced = async (plan: LoadPlan, meters: Meters): Promise<Measured> => {
  const child = startChild('generate-load.ts', plan);
  try {
    await child.next<object>(plan.warmUpSeconds * 1_000 + SLACK_MS);
    const before = readAll(meters);
    const result = await child.next<LoadResult>(plan.seconds * 1_000 + SLACK_MS);
    return { result, before, after: readAll(meters) };
  } finally {
    await child.end();
  }
};

const readAll = (meters: Meters): Record<string, number> =>
  Object.fromEntries(Object.entries(meters).map(([name, read]) => [name, read()]));
