import type { Lease, Leases } from '../platform/leases.ts';
import type { Logger } from '../platform/log.ts';
import { createWakeup } from '../platform/wakeup.ts';
import { createProcessorCheckpoints } from '../processors/checkpoints.ts';
import { type FollowingProcessor, type FollowOptions, runProcessor } from '../processors/follow.ts';
import { type ProjectionGroup, projectionGroups } from '../projections/all.ts';
import { type ProjectionsOptions, runProjections } from '../projections/runner.ts';
import type { Runtime } from './runtime.ts';

/** What one process of all runs together: some projections and the processors that belong to them. */
export interface Group extends ProjectionGroup {
  readonly processors: readonly FollowingProcessor[];
}

/** The group that has no events to follow: what is done on a schedule. */
export const UPKEEP = 'upkeep';
export const GROUP_NAMES: readonly string[] = [...Object.keys(projectionGroups), UPKEEP];

type Hooks = Pick<ProjectionsOptions, 'onApplied'> & {
  /** `projection NAME` or `processor NAME`: stopped by an event. */
  readonly onStopped?: (name: string) => void;
  /** It runs, or this process does not lead it any more: its next leader says whether it is stopped. */
  readonly onRunning?: (name: string) => void;
};

type Deps = Pick<Runtime, 'tail' | 'databaseUrl' | 'pool' | 'progress' | 'processed' | 'log'>;

const AGAIN_MS = 500;

/** Has this process lead each group whenever it falls to it. A part that fails starts again by itself. */
export const leadGroups = (
  leases: Pick<Leases, 'lead'>,
  groups: readonly Group[],
  { tail, databaseUrl: url, pool, progress, processed, log }: Deps,
  { onApplied, onStopped, onRunning }: Hooks = {},
): void => {
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
        untilAborted(`projections of ${name}`, log, signal, () => runProjections(projecting, lease, signal)),
        ...processors.map((processor) =>
          untilAborted(`processor ${processor.name}`, log, signal, () =>
            runProcessor(processor, following, lease, signal),
          ),
        ),
      ]);
      await checkpoints.flush().catch(() => undefined);
      for (const projection of projections) onRunning?.(`projection ${projection.name}`);
      for (const processor of processors) onRunning?.(`processor ${processor.name}`);
    });
  }
};

/** One part's failure must not end the others of its group. */
const untilAborted = async (
  what: string,
  log: Logger,
  signal: AbortSignal,
  run: () => Promise<void>,
): Promise<void> => {
  while (!signal.aborted) {
    try {
      await run();
    } catch (error) {
      if (!signal.aborted)
        log.warn({ part: what, error: String(error) }, 'part of a group failed; it starts again');
    }
    await createWakeup().wait(AGAIN_MS, signal);
  }
};
