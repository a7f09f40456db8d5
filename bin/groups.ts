import type { Lease, Leases } from '../platform/leases.ts';
import { restarting } from '../platform/restarting.ts';
import {
  createProcessorCheckpoints,
  type FollowingProcessor,
  type FollowOptions,
  runProcessor,
} from '../processors/follow.ts';
import { type ProjectionGroup, projectionGroups } from '../projections/all.ts';
import { type ProjectionsOptions, runProjections } from '../projections/runner.ts';
import type { Runtime } from './runtime.ts';

/** Projections and processors that run together in one process. */
export interface Group extends ProjectionGroup {
  readonly processors: readonly FollowingProcessor[];
}

/** The group of scheduled jobs, which follows no events. */
export const UPKEEP = 'upkeep';
export const GROUP_NAMES: readonly string[] = [...Object.keys(projectionGroups), UPKEEP];

type Hooks = Pick<ProjectionsOptions, 'onApplied'> & {
  /** Called with `projection NAME` or `processor NAME` when a poison event stops it. */
  readonly onStopped?: (name: string) => void;
  /** Called when it runs, or when this process no longer leads it and the next leader reports its state. */
  readonly onRunning?: (name: string) => void;
};

type Deps = Pick<Runtime, 'tail' | 'databaseUrl' | 'pool' | 'progress' | 'processed' | 'log'>;

/**
 * Leads each group that this process gets a lease for. A failed part restarts by itself.
 * @returns saves the checkpoints of the processors at once
 */
export const leadGroups = (
  leases: Pick<Leases, 'lead'>,
  groups: readonly Group[],
  { tail, databaseUrl: url, pool, progress, processed, log }: Deps,
  { onApplied, onStopped, onRunning }: Hooks = {},
): (() => Promise<void>) => {
  const checkpoints = createProcessorCheckpoints(pool);
  const following: FollowOptions = {
    tail,
    checkpoints,
    log,
    onPassed: (name, position) => processed.advance({ [name]: position }),
    onStopped: (name) => onStopped?.(`processor ${name}`),
    onRunning: (name) => onRunning?.(`processor ${name}`),
  };
  for (const { name, projections, processors } of groups) {
    const projecting: ProjectionsOptions = {
      tail,
      url,
      pool,
      progress,
      log,
      projections,
      ...(onApplied ? { onApplied } : {}),
      onStopped: (projection) => onStopped?.(`projection ${projection}`),
      onRunning: (names) => {
        for (const projection of names) onRunning?.(`projection ${projection}`);
      },
    };
    leases.lead(name, async (lease: Lease, signal) => {
      await Promise.all([
        restarting(`projections of ${name}`, log, signal, () => runProjections(projecting, lease, signal)),
        ...processors.map((processor) =>
          restarting(`processor ${processor.name}`, log, signal, () =>
            runProcessor(processor, following, lease, signal),
          ),
        ),
      ]);
      await checkpoints.flush().catch(() => undefined);
      for (const projection of projections) onRunning?.(`projection ${projection.name}`);
      for (const processor of processors) onRunning?.(`processor ${processor.name}`);
    });
  }
  return checkpoints.flush;
};
