/** Which faults a storm injects, and how. */
import { setTimeout as pause } from 'node:timers/promises';
import { createCluster } from '../cluster.ts';
import { createCrowd } from '../load/crowd.ts';
import type { Load } from '../load/load.ts';
import type { InjectedFault } from '../observations.ts';
import type { StormOptions } from '../options.ts';
import { describeUnready, waitUntilReady } from '../ready.ts';
import type { Stack } from '../stack.ts';
import type { Violations } from '../violations.ts';
import { dnsFault } from './dns-fault.ts';
import { eventStoreFaults } from './eventstore-faults.ts';
import type { Fault } from './fault.ts';
import { nodeFaults } from './node-faults.ts';
import { lockedLogFault, postgresFaults } from './postgres-faults.ts';
import { processFaults } from './process-faults.ts';

const READY_LIMIT_MS = 60_000;
const CALM_MS = 4_000;

const allFaults = (stack: Stack, load: Load, options: StormOptions): Fault[] => {
  const { random, violations } = load;
  const { eventStoreUrl, clusterCommand } = options;
  const cluster = eventStoreUrl && clusterCommand ? createCluster(eventStoreUrl, clusterCommand) : null;
  return [
    ...processFaults(stack, random, violations),
    ...postgresFaults(stack.postgres),
    ...(eventStoreUrl === undefined ? [lockedLogFault(stack.postgres)] : []),
    ...(stack.storeProxy === null ? [] : eventStoreFaults(stack.storeProxy)),
    ...(cluster === null ? [] : nodeFaults(cluster, random, createCrowd(load))),
    dnsFault(stack),
  ];
};

/** Injects one fault after another, in rounds of all of them, until the time is over. */
export const injectFaults = async (
  stack: Stack,
  load: Load,
  options: StormOptions,
): Promise<InjectedFault[]> => {
  const end = performance.now() + options.minutes * 60_000;
  const faults = allFaults(stack, load, options).filter(({ name }) => name.includes(options.only ?? ''));
  if (faults.length === 0) throw new Error(`no fault has "${options.only}" in its name`);
  const injected: InjectedFault[] = [];
  await pause(CALM_MS);
  while (performance.now() < end) {
    for (const fault of load.random.shuffle(faults)) {
      if (performance.now() > end) break;
      injected.push(await inject(fault, stack, load.violations, options.say));
      await pause(CALM_MS);
    }
  }
  return injected;
};

const inject = async (
  fault: Fault,
  stack: Stack,
  violations: Violations,
  say: StormOptions['say'],
): Promise<InjectedFault> => {
  say(fault.name);
  const startedAt = performance.now();
  await fault.run();
  const liftedAt = performance.now();
  const readyAt = await waitUntilReady(stack.processes, READY_LIMIT_MS);
  if (readyAt === null) {
    violations.add(
      `all processes are ready within ${READY_LIMIT_MS / 1_000} s of a fault`,
      `${fault.name}: ${await describeUnready(stack.processes)}`,
    );
  }
  await fault.afterwards?.();
  const servedAt = fault.afterwards === undefined ? null : performance.now();
  return { name: fault.name, startedAt, liftedAt, readyAt, servedAt };
};
