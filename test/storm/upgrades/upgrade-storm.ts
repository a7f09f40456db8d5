/** Upgrades and ways back, process by process, under the load of the storm. */
import { doorplate } from '../../support/doorplate.ts';
import type { Load } from '../load/load.ts';
import type { InjectedFault } from '../observations.ts';
import type { StormOptions } from '../options.ts';
import type { StormResult } from '../report.ts';
import type { Stack } from '../stack.ts';
import { runStorm } from '../storm.ts';
import { checkLogs, checkReadModels } from './check.ts';
import { READING } from './made-up-changes.ts';
import { makeReleases, type Release, type Releases } from './releases.ts';
import { type Replacing, replaceAll } from './replace.ts';

/** `minutes` of 0: each upgrade and each way back once, two processes at a time. */
export const runUpgradeStorm = async (options: StormOptions): Promise<StormResult> => {
  const releases = makeReleases();
  try {
    return await runStorm(options, {
      disturb: (stack, load) => upgrade(stack, load, options, releases),
      check: async (stack, load) => {
        checkLogs(stack.processes, load);
        return { 'events of a later version': await checkReadModels(stack, load) };
      },
    });
  } finally {
    releases.remove();
  }
};

const upgrade = async (
  stack: Stack,
  load: Load,
  { minutes, say }: StormOptions,
  releases: Releases,
): Promise<InjectedFault[]> => {
  const { now, reading, writing } = releases;
  const isShort = minutes === 0;
  const replacing: Replacing = {
    ...{ stack, load, say },
    atOnce: isShort ? 2 : 1,
    sideBySideMs: isShort ? 500 : 4_000,
  };
  const replaced: InjectedFault[] = [];
  const goBackAndForth = async (one: Release, other: Release, end: number): Promise<void> => {
    do {
      replaced.push(...(await replaceAll(replacing, one)));
      replaced.push(...(await replaceAll(replacing, other)));
    } while (performance.now() < end);
  };
  const half = minutes * 30_000;
  // Back to this release as long as the next one has only expanded the tables.
  await goBackAndForth(reading, now, performance.now() + half);
  replaced.push(...(await replaceAll(replacing, reading)));
  await goBackAndForth(writing, reading, performance.now() + half);
  await refuseThisRelease(stack, load, now);
  return replaced;
};

/** What writes a version that this release cannot read has shut it out. */
const refuseThisRelease = async (stack: Stack, { violations }: Load, now: Release): Promise<void> => {
  const env = { DATABASE_URL: stack.postgres.directUrl };
  const { code, stderr } = await doorplate(['projection', 'list'], env, now.folder);
  if (code !== 1 || !stderr.includes(`needs Doorplate ${READING} or later`)) {
    violations.add('a release that is too old is refused', `exit code ${code}: ${stderr}`);
  }
};
