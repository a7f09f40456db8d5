import { v7 as uuid } from 'uuid';
import { type Group, leadGroups } from '../bin/groups.ts';
import { openRuntime, type Runtime } from '../bin/runtime.ts';
import type { CommandContext } from '../commands/handle.ts';
import type { Position } from '../event-store/port.ts';
import { loadConfig } from '../platform/config/config.ts';
import { enterLeases, type Leases } from '../platform/leases/leases.ts';
import { eventStoreProblem } from '../platform/postgres/unavailable.ts';
import { createLogger } from '../platform/telemetry/log.ts';
import type { FollowingProcessor } from '../processors/follow.ts';
import { projectionGroups } from '../projections/all.ts';

/** A refusal, or a difference that was found: one line for the operator, exit code 1. */
export class Refused extends Error {}

/** The environment of a command, beside a running server or alone. */
export interface Session extends Runtime {
  readonly context: CommandContext;
  /** Waits until a read model has the position. @throws Refused after a time limit */
  projected(position: Position | null, name?: string): Promise<void>;
  /** Does the same after a write, which is accepted even if the read model is late; then it prints a note. */
  shown(position: Position | null): Promise<void>;
}

const PROJECTED_MS = 30_000;
const SHOWN_MS = 10_000;

/** Opens the stores, runs `work`, and closes everything. */
export async function withRuntime<T>(work: (runtime: Runtime) => Promise<T>): Promise<T> {
  const log = createLogger({ level: process.env.LOG_LEVEL ?? 'warn', destination: 'stderr' });
  const runtime = await openRuntime(loadConfig(process.env), log, 'join');
  try {
    const problem = await eventStoreProblem(runtime.config, runtime.store);
    if (problem !== null) throw problem;
    return await work(runtime);
  } finally {
    await runtime.close();
  }
}

/** The processors that a command runs if no server does. */
type ProcessorsOf = (runtime: Runtime) => readonly FollowingProcessor[];
/** The groups that a command leads if no server does. */
type GroupsOf = (runtime: Runtime, leases: Leases) => readonly Group[] | Promise<readonly Group[]>;

/** Projections alone, and processors of visits. */
const projecting =
  (processorsOf: ProcessorsOf): GroupsOf =>
  (runtime) =>
    Object.values(projectionGroups).map((group) => ({
      ...group,
      processors: group === projectionGroups.visits ? processorsOf(runtime) : [],
    }));

/** Does the same, and keeps the read models up to date meanwhile. */
export const withSession = <T>(
  work: (session: Session) => Promise<T>,
  processorsOf: ProcessorsOf = () => [],
): Promise<T> => withRuntime((runtime) => inSession(runtime, work, projecting(processorsOf)));

/** Does the same with all that workers lead, for a command that waits for processors. */
export const withWorkers = <T>(work: (session: Session) => Promise<T>): Promise<T> =>
  withRuntime((runtime) =>
    // Lazily, because no other command needs what delivers webhooks and asks providers.
    inSession(runtime, work, async (...of) => (await import('../bin/workers.ts')).workerGroups(...of)),
  );

/** Makes the context of an operator's command, which starts its own correlation. */
export function commandContext(clock: Runtime['clock']): CommandContext {
  const id = uuid();
  return { correlationId: id, causationId: id, at: clock.now() };
}

async function inSession<T>(
  runtime: Runtime,
  work: (session: Session) => Promise<T>,
  groupsOf: GroupsOf,
): Promise<T> {
  const { databaseUrl: url, progress, clock, log } = runtime;
  const leases = await enterLeases({ url, role: 'command', clock, log });
  leadGroups(leases, await groupsOf(runtime, leases), runtime);
  const session: Session = {
    ...runtime,
    context: commandContext(clock),
    shown: async (position) => {
      if (await progress.reached(['partners', 'team'], position, SHOWN_MS)) return;
      process.stderr.write('doorplate: accepted; the read models are late and will show it soon\n');
    },
    projected: async (position, name = 'partners') => {
      if (await progress.reached([name], position, PROJECTED_MS)) return;
      throw new Refused(`the read model ${name} is behind: see doorplate projection list`);
    },
  };
  try {
    return await work(session);
  } finally {
    await leases.stop();
  }
}
