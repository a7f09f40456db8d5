import { periodically } from '../platform/clock/periodically.ts';
import { endsWithin } from '../platform/clock/waiting.ts';
import type { Leases } from '../platform/leases/leases.ts';
import { sweepRates } from '../platform/limits/rate-limit.ts';
import { sampleDisk } from '../platform/postgres/disk-samples.ts';
import { CHECKPOINTS_CHANNEL, DUE_CHANNEL, Listener } from '../platform/postgres/notifications.ts';
import { createMetrics, type Metrics } from '../platform/telemetry/metrics.ts';
import { sweepClaims } from '../processors/claims.ts';
import { forgetInstallEvidence } from '../processors/sessions/install-evidence.ts';
import { projectionGroups } from '../projections/all.ts';
import { type Group, leadGroups, UPKEEP } from './groups.ts';
import { billingWork } from './modules/billing.ts';
import { domainWork } from './modules/domains.ts';
import { lookupWork, usageWork } from './modules/lookup.ts';
import { operationsWork } from './modules/operations.ts';
import type { openChain } from './modules/providers.ts';
import { revealWork } from './modules/reveals.ts';
import { webhookWork } from './modules/webhooks.ts';
import { retentionJobs } from './retention.ts';
import type { Runtime } from './runtime.ts';
import {
  openWorkerContext,
  type RunningWork,
  type WorkerContext,
  type WorkerModule,
} from './worker-context.ts';

const workerModules = (context: WorkerContext): WorkerModule[] => [
  lookupWork(context),
  revealWork(context),
  billingWork(context),
  usageWork(context),
  domainWork(context),
  webhookWork(context),
  operationsWork(context),
  sharedWork(context),
];

/** Tables and streams that several contexts share. */
function sharedWork({ runtime, metrics }: WorkerContext): WorkerModule {
  const { clock, pool } = runtime;
  return {
    jobs: (signal) => [
      ['7 * * * *', () => sweepClaims(pool, clock.now())],
      ['* * * * *', () => sweepRates(pool, clock.now())],
      ['11 * * * *', () => forgetInstallEvidence(pool, clock.now())],
      ['17 * * * *', () => sampleDisk(pool, clock.now())],
      ...retentionJobs(runtime, metrics, signal),
    ],
  };
}

const PART_MS = 5_000;

export interface Workers {
  /** Returns the projections and processors that a poison event has stopped. */
  stopped(): readonly string[];
  close(): Promise<void>;
}

/** Starts projections, processors and scheduled jobs; any number of processes may. `makeChain`: opens the providers. */
export async function startWorkers(
  runtime: Runtime,
  leases: Leases,
  metrics: Metrics,
  makeChain?: typeof openChain,
): Promise<Workers> {
  const { clock, progress, log } = runtime;
  const stopped = new Set<string>();
  const modules = workerModules(openWorkerContext(runtime, leases, metrics, makeChain));
  const saveCheckpoints = leadGroups(leases, groupsOf(modules), runtime, {
    onApplied: (names, lastEventAt) => metrics.applied(names, lastEventAt, clock.now()),
    onStopped: (name) => {
      stopped.add(name);
      metrics.stopped.set({ name }, 1);
    },
    onRunning: (name) => {
      stopped.delete(name);
      metrics.stopped.set({ name }, 0);
    },
  });

  const running: RunningWork[] = [];
  for (const { start } of modules) if (start) running.push(await start());
  const nudge = (): void => {
    for (const work of running) work.nudge?.();
  };
  const due = new Listener({
    url: runtime.databaseUrl,
    channels: [DUE_CHANNEL, CHECKPOINTS_CHANNEL],
    onNotification: (channel) => {
      if (channel === DUE_CHANNEL) return nudge();
      // A failed save is retried.
      void saveCheckpoints().catch(() => undefined);
      progress.hurry([]);
    },
    ready: nudge,
  });
  due.ensure();

  leases.lead(UPKEEP, (_lease, signal) =>
    periodically(
      signal,
      log,
      modules.flatMap(({ jobs }) => jobs?.(signal) ?? []),
    ),
  );

  return {
    stopped: () => [...stopped],
    close: async () => {
      // Concurrently, so that a hanging part does not use up the others' time.
      const parts = [due.close(), ...running.map((work) => work.stop())];
      await Promise.allSettled(parts.map((part) => endsWithin(part, PART_MS)));
    },
  };
}

/** Returns the groups that workers lead, for a command that runs while no server does. */
export const workerGroups = (runtime: Runtime, leases: Leases): readonly Group[] =>
  groupsOf(workerModules(openWorkerContext(runtime, leases, createMetrics(), undefined)));

/** A process that joins another is given its last groups, and a third one the next: the busy ones are then apart. */
const ORDER: Readonly<Record<keyof typeof projectionGroups, number>> = {
  visits: 0,
  signals: 1,
  lookups: 2,
  webhooks: 3,
};

const groupsOf = (modules: readonly WorkerModule[]) =>
  Object.values(projectionGroups)
    .toSorted((a, b) => ORDER[a.name] - ORDER[b.name])
    .map((group) => ({
      ...group,
      processors: modules.flatMap(({ processors }) => processors?.[group.name] ?? []),
    }));
