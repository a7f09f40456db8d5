/** Upgrades and ways back, process by process, under the load of the storm. */
import type { Load } from '../load/load.ts';
import type { InjectedFault } from '../observations.ts';
import type { StormOptions } from '../options.ts';
import type { StormProcess } from '../processes.ts';
import type { StormResult } from '../report.ts';
import type { Stack } from '../stack.ts';
import { runStorm, type StormPlan } from '../storm.ts';
import { createMonth } from './month.ts';
import { makeReleases, type Release, type Releases } from './releases.ts';
import { replaceInTurn, type Step } from './replace.ts';

type Disturb = (stack: Stack, load: Load, releases: Releases) => Promise<InjectedFault[]>;

/** Begins with the release before this one, and replaces all processes by this one and back until the time is over. */
export const runUpgradeStorm = (options: StormOptions): Promise<StormResult> =>
  withReleases(options, {}, async (stack, load, { now, before }) => {
    const replacing = { load, say: options.say, sideBySideMs: 4_000 };
    const replaced: InjectedFault[] = [];
    const goTo = async (release: Release): Promise<void> => {
      const steps = load.random.shuffle(stack.processes).map((one): Step => [one, release]);
      replaced.push(...(await replaceInTurn(replacing, steps)));
    };
    const end = performance.now() + options.minutes * 60_000;
    for (await goTo(now); performance.now() < end; await goTo(now)) await goTo(before);
    return replaced;
  });

/** One api and two workers processes: both releases side by side, and the way back of one process. */
export const runShortUpgradeStorm = (options: StormOptions): Promise<StormResult> =>
  withReleases(options, { roles: ['api', 'workers', 'workers'] }, (stack, load, { now, before }) => {
    const [api, first, second] = stack.processes as readonly [StormProcess, StormProcess, StormProcess];
    return replaceInTurn({ load, say: options.say, sideBySideMs: 500 }, [
      [first, now],
      [api, now],
      [first, before],
      [first, now],
      [second, now],
    ]);
  });

/** @throws NoEarlierRelease */
const withReleases = async (
  options: StormOptions,
  course: Pick<StormPlan, 'roles'>,
  disturb: Disturb,
): Promise<StormResult> => {
  const releases = makeReleases();
  try {
    return await runStorm(options, {
      ...course,
      root: releases.before.folder,
      prelude: options.month ? createMonth : undefined,
      disturb: (stack, load) => disturb(stack, load, releases),
      check: async ({ processes, api: [api] }, { violations }) => {
        for (const { name, log } of processes) {
          const stopped = log()
            .split('\n')
            .find((line) => line.includes('stopped by an event'));
          if (stopped !== undefined) violations.add('no event stops a release', `${name}: ${stopped}`);
        }
        const { code, stderr } = (await api?.cli('projection', 'rebuild', '--all')) ?? {};
        if (code !== 0) violations.add('read models are rebuilt', `${code}: ${stderr}`);
        return {};
      },
    });
  } finally {
    releases.remove();
  }
};
