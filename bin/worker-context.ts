import type { WorkCapacity } from '../commands/lookup/submit-lookup.ts';
import type { Position } from '../event-store/port.ts';
import type { Job } from '../platform/clock/periodically.ts';
import type { Leases } from '../platform/leases/leases.ts';
import { createRateLimiter, type RateLimiter } from '../platform/limits/rate-limit.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import type { FollowingProcessor } from '../processors/follow.ts';
import type { projectionGroups } from '../projections/all.ts';
import { createRevealableSessions } from '../queries/sessions/sessions.ts';
import { enrichmentCapacity, type openChain } from './modules/providers.ts';
import { type ReadModels, type Runtime, readModels } from './runtime.ts';

/** The background work of a context. */
export interface WorkerModule {
  /** By group (`projections/all.ts`): they follow the log in the process that leads the projections of the group. */
  readonly processors?: Partial<Record<keyof typeof projectionGroups, readonly FollowingProcessor[]>>;
  /** The process that leads the upkeep runs them. */
  readonly jobs?: (signal: AbortSignal) => readonly Job[];
  /** Starts what runs in every process. */
  readonly start?: () => Promise<RunningWork>;
}

export interface RunningWork {
  /** Called when work may be due. */
  readonly nudge?: () => void;
  stop(): Promise<void>;
}

/** What the modules build their background work from. */
export interface WorkerContext {
  readonly runtime: Runtime;
  readonly leases: Leases;
  readonly metrics: Metrics;
  readonly limiter: RateLimiter;
  readonly capacity: WorkCapacity;
  readonly sessions: ReturnType<typeof createRevealableSessions>;
  /** Waits until read models reach a position; false after a time limit. */
  readonly applied: (readModels: readonly string[], position: Position) => Promise<boolean>;
  readonly waitForHead: ReadModels['waitForHead'];
  readonly makeChain: typeof openChain | undefined;
}

const APPLIED_MS = 4_000;

export function openWorkerContext(
  runtime: Runtime,
  leases: Leases,
  metrics: Metrics,
  makeChain: typeof openChain | undefined,
): WorkerContext {
  const { clock, pool, progress } = runtime;
  const limiter = createRateLimiter({ pool, clock, alone: () => false });
  const { waitForHead } = readModels(runtime);
  return {
    runtime,
    leases,
    metrics,
    limiter,
    capacity: enrichmentCapacity(runtime, limiter),
    sessions: createRevealableSessions({ ...runtime, waitForHead: waitForHead(['sessions']) }),
    applied: (names, position) => progress.reached(names, position, APPLIED_MS),
    waitForHead,
    makeChain,
  };
}
