import {
  type Environment,
  type Running,
  type RunOptions,
  runDoorplate,
} from '../../cli/installation/serving.ts';
import { reapProcess } from './reaped.ts';

export type { Environment };

/** All processes of a database must have the same. */
export const MASTER_KEY = Buffer.alloc(32, 7).toString('base64');

/** Starts the command `doorplate` with this environment; it ends with the test's own process, however that ends. */
export const startDoorplate = (
  args: readonly string[],
  env: Environment,
  options: RunOptions = {},
): Running => {
  const running = runDoorplate(args, env, options);
  if (running.child.pid !== undefined) reapProcess(running.child.pid);
  return running;
};

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export const doorplate = async (args: readonly string[], env: Environment, root?: string): Promise<Ended> => {
  const running = startDoorplate(args, env, { root });
  const code = await running.ended;
  return { code, stdout: running.stdout(), stderr: running.stderr() };
};

/**
 * Runs a command in this process, at a third of the CPU time: `doorplate` above is for what only a process of its own
 * shows. One at a time.
 */
export const doorplateHere = async (args: readonly string[], env: Environment): Promise<Ended> => {
  const { run } = await import('../../cli/main.ts');
  const written = { stdout: '', stderr: '' };
  const writes = { stdout: process.stdout.write, stderr: process.stderr.write };
  for (const name of ['stdout', 'stderr'] as const) {
    process[name].write = (text: unknown, ...rest: unknown[]) => {
      written[name] += text;
      const done = rest.at(-1);
      if (typeof done === 'function') done();
      return true;
    };
  }
  const own = process.env;
  process.env = { PATH: own.PATH, ...env };
  try {
    return { code: await run(['node', 'doorplate', ...args]), ...written };
  } finally {
    process.env = own;
    process.stdout.write = writes.stdout;
    process.stderr.write = writes.stderr;
  }
};
