import { v7 as uuid } from 'uuid';
import type { CommandContext } from '../../commands/handle.ts';
import type { Position } from '../../event-store/port.ts';
import { loadConfig } from '../../platform/config.ts';
import { enterLeases } from '../../platform/leases.ts';
import { createLogger } from '../../platform/log.ts';
import type { FollowingProcessor } from '../../processors/follow.ts';
import { projectionGroups } from '../../projections/all.ts';
import { leadGroups } from '../groups.ts';
import { openRuntime, type Runtime } from '../runtime.ts';
import { eventStoreProblem } from '../unreachable.ts';

/** A refusal or a difference found: one line for the operator, exit 1. */
export class Refused extends Error {}

/** What a command works with, beside a running server or by itself. */
export interface Session extends Runtime {
  readonly context: CommandContext;
  /** Waits until a read model has the position, to read from it. @throws Refused when it does not get there */
  projected(position: Position | null, name?: string): Promise<void>;
  /** The same after a write, which is accepted however late the read models are: then a line says so. */
  shown(position: Position | null): Promise<void>;
}

const PROJECTED_MS = 30_000;
const SHOWN_MS = 10_000;

/** Opens the stores, runs `work`, and closes everything again. */
export const withFoundation = async <T>(work: (runtime: Runtime) => Promise<T>): Promise<T> => {
  const log = createLogger({ level: process.env.LOG_LEVEL ?? 'warn', destination: 'stderr' });
  const runtime = await openRuntime(loadConfig(process.env), log, 'join');
  try {
    const problem = await eventStoreProblem(runtime.config, runtime.store);
    if (problem !== null) throw problem;
    return await work(runtime);
  } finally {
    await runtime.close();
  }
};

/** The processors that a command needs where no server runs. */
type ProcessorsOf = (runtime: Runtime) => readonly FollowingProcessor[];

/** The same, and brings the read models up to date meanwhile. */
export const withSession = <T>(
  work: (session: Session) => Promise<T>,
  processorsOf: ProcessorsOf = () => [],
): Promise<T> => withFoundation((runtime) => inSession(runtime, work, processorsOf));

/** Of what an operator asks for: it begins with the command. */
export const commandContext = (clock: Runtime['clock']): CommandContext => {
  const id = uuid();
  return { correlationId: id, causationId: id, at: clock.now() };
};

const inSession = async <T>(
  runtime: Runtime,
  work: (session: Session) => Promise<T>,
  processorsOf: ProcessorsOf,
): Promise<T> => {
  const { databaseUrl: url, progress, clock, log } = runtime;
  const leases = await enterLeases({ url, role: 'command', clock, log });
  const groups = Object.values(projectionGroups).map((group) => ({
    ...group,
    processors: group === projectionGroups.visits ? processorsOf(runtime) : [],
  }));
  leadGroups(leases, groups, runtime);
  const session: Session = {
    ...runtime,
    context: commandContext(clock),
    shown: async (position) => {
      if (await progress.reached(['partners'], position, SHOWN_MS)) return;
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
};
