import { setTimeout as pause } from 'node:timers/promises';
import type { Load } from '../load/load.ts';
import type { InjectedFault } from '../observations.ts';
import type { StormProcess } from '../processes.ts';
import { describeUnready, waitUntilReady } from '../ready.ts';
import type { Release } from './releases.ts';

const READY_LIMIT_MS = 60_000;

export interface Replacing {
  readonly load: Load;
  readonly say: (line: string) => void;
  /** How long the releases run side by side after each step, in milliseconds. */
  readonly sideBySideMs: number;
}

/** One process that is replaced by one of another release. */
export type Step = readonly [StormProcess, Release];

/** Takes the steps one after the other under load. */
export const replaceInTurn = async (
  replacing: Replacing,
  steps: readonly Step[],
): Promise<InjectedFault[]> => {
  const replaced: InjectedFault[] = [];
  for (const step of steps) {
    replaced.push(await replace(replacing, step));
    await pause(replacing.sideBySideMs);
  }
  return replaced;
};

const replace = async (
  { load: { violations }, say }: Replacing,
  [one, release]: Step,
): Promise<InjectedFault> => {
  say(`${one.name} to ${release.name}`);
  const startedAt = performance.now();
  const code = await one.terminate();
  if (code !== 0) {
    violations.add('SIGTERM ends a process with 0', `${one.name}: ${code}:\n${one.lastLogLines()}`);
  }
  one.start(release.folder);
  const liftedAt = performance.now();
  const readyAt = await waitUntilReady([one], READY_LIMIT_MS);
  if (readyAt === null) {
    violations.add(`a process of ${release.name} gets ready`, await describeUnready([one]));
  }
  return { name: `${one.role} process to ${release.name}`, startedAt, liftedAt, readyAt, servedAt: null };
};
