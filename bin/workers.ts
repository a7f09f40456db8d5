import { CHECKPOINTS_CHANNEL, DUE_CHANNEL } from '../platform/channels.ts';
import type { Leases } from '../platform/leases.ts';
import { createListener } from '../platform/listener.ts';
import type { Metrics } from '../platform/metrics.ts';
import { endsWithin } from '../platform/pause.ts';
import { periodically } from '../platform/periodically.ts';
import { projectionGroups } from '../projections/all.ts';
import { leadGroups, UPKEEP } from './groups.ts';
import type { openChain } from './modules/providers.ts';
import type { Runtime } from './runtime.ts';
import { openWorkerContext, type RunningWork, type WorkerModule } from './worker-context.ts';
import { workerModules } from './worker-modules.ts';

const PART_MS = 5_000;

export interface Workers {
  /** Returns the projections and processors that a poison event has stopped. */
  stopped(): readonly string[];
  close(): Promise<void>;
}

/** Starts projections, processors and scheduled jobs; any number of processes may. `makeChain`: opens the providers. */
export const startWorkers = async (
  runtime: Runtime,
  leases: Leases,
  metrics: Metrics,
  makeChain?: typeof openChain,
): Promise<Workers> => {
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
  const due = createListener({
    url: runtime.databaseUrl,
    name: 'doorplate due',
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
};

const groupsOf = (modules: readonly WorkerModule[]) =>
  Object.values(projectionGroups).map((group) => ({
    ...group,
    processors: modules.flatMap(({ processors }) => processors?.[group.name] ?? []),
  }));
