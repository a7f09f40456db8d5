/** A storm: mixed load over several processes, one fault after another, and the proof that every promise was kept. */
import { setTimeout as pause } from 'node:timers/promises';
import { type Client, createClient } from './client.ts';
import { createCluster } from './cluster.ts';
import { dnsFault } from './faults/dns-fault.ts';
import { eventStoreFaults } from './faults/eventstore-faults.ts';
import type { Fault } from './faults/fault.ts';
import { nodeFaults } from './faults/node-faults.ts';
import { lockedLogFault, postgresFaults } from './faults/postgres-faults.ts';
import { processFaults } from './faults/process-faults.ts';
import { checkInvariants } from './invariants/check.ts';
import { createCrowd } from './load/crowd.ts';
import { createReceiver } from './load/deliveries.ts';
import { createAddresses, type Load } from './load/load.ts';
import { startLoad } from './load/start.ts';
import { checkMemory, peaksOf, watchMemory } from './memory.ts';
import { type InjectedFault, REQUEST_KINDS, recoveries } from './observations.ts';
import type { Partner } from './partners.ts';
import { createRandom } from './random.ts';
import { describeUnready, waitUntilReady } from './ready.ts';
import { machineName, type StormResult } from './report.ts';
import { createPartners } from './setup-partners.ts';
import { type Stack, startStack } from './stack.ts';
import { createViolations, type Violations } from './violations.ts';

export interface StormOptions {
  /** How long load and faults go on; the proofs take up to some minutes more. */
  readonly minutes: number;
  /** Decides the order of the faults, their victims and the load. */
  readonly seed: number;
  /** An `esdb://` URL; undefined: events are in PostgreSQL. */
  readonly eventStoreUrl?: string | undefined;
  /** Called as `COMMAND start|stop|kill|freeze|thaw NODE`; undefined: no fault of EventStoreDB nodes. */
  readonly clusterCommand?: string | undefined;
  /** Told what goes on, a line each. */
  readonly say: (line: string) => void;
}

const START_LIMIT_MS = 90_000;
const READY_LIMIT_MS = 60_000;
const CALM_MS = 4_000;

/** Runs a storm. @throws when the stack cannot be started; what the service does wrong is in the result */
export const runStorm = async (options: StormOptions): Promise<StormResult> => {
  const { seed, eventStoreUrl, say } = options;
  const random = createRandom(seed);
  const violations = createViolations(say);
  const partners: Partner[] = [];
  let receive: ReturnType<typeof createReceiver> = (_request, response) => void response.writeHead(503).end();
  const stack = await startStack({ eventStoreUrl, violations, onDelivery: (...sent) => receive(...sent) });
  try {
    if ((await waitUntilReady(stack.processes, START_LIMIT_MS)) === null) {
      throw new Error(`not ready after the start: ${await describeUnready(stack.processes)}`);
    }
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
    const injected = await injectFaults(stack, load, options);
    await stopLoad();
    const loadEndedAt = performance.now();
    memory.stop();
    receiverFails = false;
    say('load ended; checking the invariants');
    const totals = await checkInvariants(stack, load);
    const peaks = peaksOf(memory.samples, startedAt, loadEndedAt);
    checkMemory(peaks, loadEndedAt - startedAt, violations);
    return resultOf(options, { client, violations, injected, loadEndedAt, totals, peaks });
  } finally {
    await stack.close();
  }
};

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
const injectFaults = async (stack: Stack, load: Load, options: StormOptions): Promise<InjectedFault[]> => {
  const end = performance.now() + options.minutes * 60_000;
  const faults = allFaults(stack, load, options);
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
  return { name: fault.name, startedAt, liftedAt, readyAt };
};

interface Findings {
  readonly client: Client;
  readonly violations: Violations;
  readonly injected: readonly InjectedFault[];
  readonly loadEndedAt: number;
  readonly totals: StormResult['totals'];
  readonly peaks: StormResult['memory'];
}

const resultOf = ({ minutes, seed, eventStoreUrl }: StormOptions, findings: Findings): StormResult => {
  const { client, violations, injected, loadEndedAt, totals, peaks } = findings;
  const count = (kind: string, outcome: string): number =>
    client.observations.filter((one) => one.kind === kind && one.outcome === outcome).length;
  const kinds = REQUEST_KINDS.map((kind) => {
    const [success, unavailable, cut] = ['success', 'unavailable', 'cut'].map((outcome) =>
      count(kind, outcome),
    );
    return [kind, { success, unavailable, cut }];
  });
  const names = [...new Set(injected.map(({ name }) => name))];
  return {
    date: new Date().toISOString().slice(0, 10),
    machine: machineName(),
    store: eventStoreUrl === undefined ? 'PostgreSQL' : 'EventStoreDB',
    seed,
    minutes,
    faults: Object.fromEntries(
      names.map((name) => [name, injected.filter((one) => one.name === name).length]),
    ),
    requests: Object.fromEntries(kinds),
    totals,
    recoveries: recoveries(client.observations, injected, loadEndedAt),
    readySeconds: Object.fromEntries(names.map((name) => [name, slowestReady(injected, name)])),
    memory: peaks,
    violations: violations.found,
    violationCount: violations.count(),
  };
};

const slowestReady = (injected: readonly InjectedFault[], name: string): number | null => {
  const times = injected
    .filter((one) => one.name === name)
    .map(({ readyAt, liftedAt }) => (readyAt === null ? null : Math.round((readyAt - liftedAt) / 100) / 10));
  return times.includes(null) ? null : Math.max(...(times as number[]));
};
