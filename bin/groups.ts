import { eventCatalogue } from '../domain/event-catalogue.ts';
import { restarting } from '../platform/clock/periodically.ts';
import type { Lease, Leases } from '../platform/leases/leases.ts';
import { BILLING } from '../processors/billing/bill-completed-reveals.ts';
import type { Consumers } from '../processors/consumers.ts';
import { KEEPING } from '../processors/domains/keep-domains.ts';
import {
  createProcessorCheckpoints,
  type FollowedStreams,
  type FollowingProcessor,
  type FollowOptions,
  runProcessor,
} from '../processors/follow.ts';
import { ENRICHING } from '../processors/lookup/enrich-reveals.ts';
import { SETTLING } from '../processors/lookup/settle-reservations.ts';
import { COMPLETING } from '../processors/reveals/complete-reveals.ts';
import { QUEUEING } from '../processors/webhooks/queue-webhook-events.ts';
import { allProjections, type ProjectionGroup, projectionGroups } from '../projections/all.ts';
import type { Projection } from '../projections/projection.ts';
import { type ProjectionsOptions, runProjections } from '../projections/runner.ts';
import type { Runtime } from './runtime.ts';

const allProcessors: readonly FollowedStreams[] = [
  SETTLING,
  ENRICHING,
  BILLING,
  COMPLETING,
  QUEUEING,
  KEEPING,
];

export const CONSUMERS: Consumers = {
  projections: allProjections.map(({ name }) => name),
  processors: allProcessors.map(({ name }) => name),
};

type Followers = {
  readonly projections: readonly Pick<Projection, 'name' | 'types'>[];
  readonly processors: readonly FollowedStreams[];
};
const ALL: Followers = { projections: allProjections, processors: allProcessors };

/**
 * Returns the consumers of the events of one kind of stream: a projection that applies one of its types, or all types, and a
 * processor that handles such streams. Retention deletes a stream after these have passed it, so that another consumer
 * that an event has stopped holds up nothing that it never reads. All consumers follow a kind that the catalogue lacks.
 */
export function followersOf(prefix: string, { projections, processors }: Followers = ALL): Consumers {
  const kinds = eventCatalogue.filter(({ stream }) => stream.startsWith(prefix));
  const types = new Set(kinds.flatMap(({ events }) => Object.keys(events)));
  const isOverlapping = (followed: string): boolean =>
    followed.startsWith(prefix) || prefix.startsWith(followed);
  return {
    projections: projections
      .filter(({ types: applied }) => types.size === 0 || (applied?.some((type) => types.has(type)) ?? true))
      .map(({ name }) => name),
    processors: processors
      .filter(({ prefixes }) => types.size === 0 || prefixes.some(isOverlapping))
      .map(({ name }) => name),
  };
}

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
export function leadGroups(
  leases: Pick<Leases, 'lead'>,
  groups: readonly Group[],
  { tail, databaseUrl: url, pool, progress, processed, log }: Deps,
  { onApplied, onStopped, onRunning }: Hooks = {},
): () => Promise<void> {
  const checkpoints = createProcessorCheckpoints(pool);
  const following: FollowOptions = {
    tail,
    checkpoints,
    log,
    onPassed: (name, position) => processed.advance({ [name]: position }),
    onStopped: (name) => onStopped?.(`processor ${name}`),
    onRunning: (name) => onRunning?.(`processor ${name}`),
  };
  for (const { name, projections, processors, gatherMs } of groups) {
    const projecting: ProjectionsOptions = {
      tail,
      url,
      pool,
      progress,
      log,
      projections,
      gatherMs,
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
}
