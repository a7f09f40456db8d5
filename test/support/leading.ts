/** Runs projections and processors as a process does, under its own leases. */
import { enterLeases, type Leases, type LeasesOptions } from '../../platform/leases/leases.ts';
import {
  createProcessorCheckpoints,
  type FollowingProcessor,
  type FollowOptions,
  runProcessor,
} from '../../processors/follow.ts';
import type { Projection } from '../../projections/projection.ts';
import { type ProjectionsOptions, runProjections } from '../../projections/runner.ts';

interface Runnable {
  stop(): Promise<void>;
}
type Stack = Pick<ProjectionsOptions, 'tail' | 'pool' | 'url' | 'log'> & Pick<LeasesOptions, 'clock'>;

export const startProjections = (
  projections: readonly Projection[],
  options: Stack & Omit<ProjectionsOptions, 'projections'>,
): Runnable =>
  inLeases(options, (leases) =>
    leases.lead(`projections ${projections.map(({ name }) => name).join(' ')}`, (lease, signal) =>
      runProjections({ ...options, projections }, lease, signal),
    ),
  );

export const startProcessor = (
  processor: FollowingProcessor,
  stack: Stack,
  options: Partial<FollowOptions> = {},
): Runnable => {
  const checkpoints = createProcessorCheckpoints(stack.pool);
  const { tail, log } = stack;
  const following = { tail, log, onPassed: () => undefined, checkpoints, ...options };
  return inLeases(stack, (leases) =>
    leases.lead(`processor ${processor.name}`, async (lease, signal) => {
      await runProcessor(processor, following, lease, signal);
      await checkpoints.flush();
    }),
  );
};

const inLeases = (
  { url, clock, log }: Omit<LeasesOptions, 'role'>,
  lead: (leases: Leases) => void,
): Runnable => {
  const entered = enterLeases({ url, role: 'command', clock, log }).then((leases) => {
    lead(leases);
    return leases;
  });
  return { stop: async () => (await entered).stop() };
};
