/** Upgrades and ways back, process by process, under the load of the storm. */
import { doorplate } from '../../support/doorplate.ts';
import type { Load } from '../load/load.ts';
import type { InjectedFault } from '../observations.ts';
import type { StormOptions } from '../options.ts';
import type { StormProcess } from '../processes.ts';
import type { StormResult } from '../report.ts';
import type { Stack } from '../stack.ts';
import { runStorm, type StormPlan } from '../storm.ts';
import { checkLogs, checkReadModels, laterVersionWritten } from './check.ts';
import { READING } from './made-up-changes.ts';
import { makeReleases, type Release, type Releases } from './releases.ts';
import { replaceInTurn, type Step } from './replace.ts';

type Disturb = (stack: Stack, load: Load, releases: Releases) => Promise<InjectedFault[]>;

/**
 * Replaces all processes by the next release and back during the first half, and by the one after it in the second.
 */
export const runUpgradeStorm = (options: StormOptions): Promise<StormResult> =>
  withReleases(options, {}, async (stack, load, { now, reading, writing }) => {
    const replacing = { load, say: options.say, sideBySideMs: 4_000 };
    const replaced: InjectedFault[] = [];
    const goTo = async (release: Release): Promise<void> => {
      const steps = load.random.shuffle(stack.processes).map((one): Step => [one, release]);
      replaced.push(...(await replaceInTurn(replacing, steps)));
    };
    const goBackAndForth = async (one: Release, other: Release): Promise<void> => {
      const end = performance.now() + options.minutes * 30_000;
      do {
        await goTo(one);
        await goTo(other);
      } while (performance.now() < end);
    };
    // Rollback to this release works while the next one has only expanded the tables.
    await goBackAndForth(reading, now);
    await goTo(reading);
    await goBackAndForth(writing, reading);
    return replaced;
  });

/** One api and two workers processes: each release beside the next one once, and the rollback of one process. */
export const runShortUpgradeStorm = (options: StormOptions): Promise<StormResult> =>
  withReleases(options, { roles: ['api', 'workers', 'workers'] }, async (stack, load, releases) => {
    const { now, reading, writing } = releases;
    const [api, first, second] = stack.processes as readonly [StormProcess, StormProcess, StormProcess];
    const replaced = await replaceInTurn({ load, say: options.say, sideBySideMs: 500 }, [
      [api, reading],
      [first, reading],
      [first, now],
      [first, reading],
      [second, reading],
      [api, writing],
    ]);
    await laterVersionWritten(stack);
    return replaced;
  });

const withReleases = async (
  options: StormOptions,
  course: Pick<StormPlan, 'roles'>,
  disturb: Disturb,
): Promise<StormResult> => {
  const releases = makeReleases();
  try {
    return await runStorm(options, {
      ...course,
      disturb: (stack, load) => disturb(stack, load, releases),
      check: async (stack, load) => {
        await refuseThisRelease(stack, load, releases.now);
        checkLogs(stack.processes, load);
        return { 'events of a later version': await checkReadModels(stack, load) };
      },
    });
  } finally {
    releases.remove();
  }
};

/** A release that writes a version unknown to this one has ended the rollback. */
const refuseThisRelease = async (stack: Stack, { violations }: Load, now: Release): Promise<void> => {
  const env = { DATABASE_URL: stack.postgres.directUrl };
  const { code, stderr } = await doorplate(['projection', 'list'], env, now.folder);
  if (code !== 1 || !stderr.includes(`needs Doorplate ${READING} or later`)) {
    violations.add('a release that is too old is refused', `exit code ${code}: ${stderr}`);
  }
};
