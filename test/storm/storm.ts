/** A storm: mixed load over several processes, one fault after another, and the check that every promise was kept. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Received } from '../support/receiver.ts';
import { createClient } from './client.ts';
import { injectFaults } from './faults/inject.ts';
import { checkInvariants } from './invariants/check.ts';
import { createReceiver } from './load/deliveries.ts';
import { createAddresses, type Load } from './load/load.ts';
import { startLoad } from './load/start.ts';
import { checkMemory, peaksOf, watchMemory } from './memory.ts';
import type { InjectedFault } from './observations.ts';
import type { StormOptions } from './options.ts';
import type { Partner } from './partners.ts';
import type { Role, StormProcess } from './processes.ts';
import { createRandom } from './random.ts';
import { describeUnready, waitUntilReady } from './ready.ts';
import type { StormResult } from './report.ts';
import { resultOf } from './result.ts';
import { createPartners } from './setup-partners.ts';
import { type Stack, startStack } from './stack.ts';
import { createViolations, type Violations } from './violations.ts';

const START_LIMIT_MS = 90_000;

/** What happens before the storm's own partners are there. */
export interface Prelude {
  /** What `move-clock.ts` reads. */
  readonly clockFile: string;
  /** Takes a delivery. @returns false: it is not of the prelude's partner */
  receive(delivery: Received): boolean;
  play(stack: Stack): Promise<void>;
  /** At the end. @returns how much of what was checked */
  check(stack: Stack): Promise<Record<string, number>>;
}

/** The changes to the stack under load, and the checks beside the invariants. */
export interface StormPlan {
  /** Default: two api and two workers processes. */
  readonly roles?: readonly Role[];
  /** The folder of the program that the processes begin with. Default: this one. */
  readonly root?: string;
  readonly prelude?: ((options: StormOptions, violations: Violations) => Prelude) | undefined;
  disturb(stack: Stack, load: Load, options: StormOptions): Promise<InjectedFault[]>;
  /** @returns how much of what was checked */
  check?(stack: Stack, load: Load): Promise<Record<string, number>>;
}

const FAULTS: StormPlan = { disturb: injectFaults };

/** Runs a storm. @throws when the stack cannot be started; broken promises are in the result */
export const runStorm = async (options: StormOptions, course: StormPlan = FAULTS): Promise<StormResult> => {
  const { seed, eventStoreUrl, say } = options;
  const random = createRandom(seed);
  const violations = createViolations(say);
  const partners: Partner[] = [];
  let receive: ReturnType<typeof createReceiver> = (_request, response) => void response.writeHead(503).end();
  const prelude = course.prelude?.(options, violations);
  const stack = await startStack({
    eventStoreUrl,
    violations,
    onDelivery: (request, response) => {
      if (prelude?.receive(request)) response.writeHead(204).end();
      else receive(request, response);
    },
    roles: course.roles,
    root: course.root,
    clockFile: prelude?.clockFile,
  });
  try {
    if ((await waitUntilReady(stack.processes, START_LIMIT_MS)) === null) {
      throw new Error(`not ready after the start: ${await describeUnready(stack.processes)}`);
    }
    await prelude?.play(stack);
    const client = createClient(stack.api, random, violations);
    const load: Load = { client, partners, random, violations, nextIp: createAddresses(random) };
    let receiverFails = true;
    receive = createReceiver(load, () =>
      receiverFails ? { refused: 0.08, cut: 0.04 } : { refused: 0, cut: 0 },
    );
    partners.push(...(await createPartners(stack, `storm-${process.pid}-${Date.now()}`)));
    const memory = watchMemory(stack.processes);
    const startedAt = performance.now();
    const stopLoad = startLoad(load);
    const injected = await course.disturb(stack, load, options).finally(stopLoad);
    const loadEndedAt = performance.now();
    memory.stop();
    receiverFails = false;
    say('load ended; checking the invariants');
    const totals = {
      ...(await checkInvariants(stack, load)),
      ...(await course.check?.(stack, load)),
      ...(await prelude?.check(stack)),
    };
    const peaks = peaksOf(memory.samples, startedAt, loadEndedAt);
    checkMemory(peaks, loadEndedAt - startedAt, violations);
    return resultOf(options, {
      client,
      violations,
      processes: stack.processes,
      injected,
      loadEndedAt,
      totals,
      peaks,
    });
  } finally {
    keepLogs(options, stack.processes);
    await stack.close();
  }
};

const keepLogs = ({ logFolder }: StormOptions, processes: readonly StormProcess[]): void => {
  if (logFolder === undefined) return;
  for (const one of processes) writeFileSync(join(logFolder, `${one.name}.log`), one.log());
};
