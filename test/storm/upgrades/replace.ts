import { setTimeout as pause } from 'node:timers/promises';
import type { Load } from '../load/load.ts';
import type { InjectedFault } from '../observations.ts';
import type { StormProcess } from '../processes.ts';
import { describeUnready, waitUntilReady } from '../ready.ts';
import type { Stack } from '../stack.ts';
import type { Release } from './releases.ts';

const READY_LIMIT_MS = 60_000;

export interface Replacing {
  readonly stack: Stack;
  readonly load: Load;
  readonly say: (line: string) => void;
  /** How many processes are replaced at once: of one and of two the others serve meanwhile. */
  readonly atOnce: 1 | 2;
  /** How long the releases stay side by side after each step, in milliseconds. */
  readonly sideBySideMs: number;
}

/** Replaces all processes by those of another release, in an order of chance, while the load goes on. */
export const replaceAll = async (replacing: Replacing, release: Release): Promise<InjectedFault[]> => {
  const { stack, load, atOnce, say } = replacing;
  const api = load.random.shuffle(stack.api);
  const workers = load.random.shuffle(stack.workers);
  const pairs = api.map((one, index) => [one, workers[index] as StormProcess]);
  const steps = atOnce === 2 ? pairs : load.random.shuffle(pairs.flat()).map((one) => [one]);
  const replaced: InjectedFault[] = [];
  for (const step of steps) {
    say(`${step.map(({ name }) => name).join(' and ')} to ${release.name}`);
    replaced.push(await replace(replacing, step, release));
    await pause(replacing.sideBySideMs);
  }
  return replaced;
};

const replace = async (
  { load: { violations } }: Replacing,
  processes: readonly StormProcess[],
  release: Release,
): Promise<InjectedFault> => {
  const startedAt = performance.now();
  await Promise.all(
    processes.map(async (one) => {
      const code = await one.terminate();
      if (code !== 0) {
        violations.add('SIGTERM ends a process with 0', `${one.name}: ${code}:\n${one.lastLogLines()}`);
      }
      one.start(release.folder);
    }),
  );
  const liftedAt = performance.now();
  const readyAt = await waitUntilReady(processes, READY_LIMIT_MS);
  if (readyAt === null) {
    violations.add(`a process of ${release.name} gets ready`, await describeUnready(processes));
  }
  return { name: `processes to ${release.name}`, startedAt, liftedAt, readyAt, servedAt: null };
};
