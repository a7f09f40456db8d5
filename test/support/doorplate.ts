import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { reapProcess } from './reaped.ts';

export type Environment = Readonly<Record<string, string>>;

/** All processes of a database must have the same. */
export const MASTER_KEY = Buffer.alloc(32, 7).toString('base64');

/** The flags of `npm start` and of the program's first line. */
const FLAGS = ['--max-semi-space-size=16'];
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface Running {
  readonly child: ChildProcess;
  /** Everything that it has written so far. */
  stdout(): string;
  stderr(): string;
  readonly ended: Promise<number | null>;
}

/**
 * Starts the command `doorplate` with this environment, without the test's own variables except the path. `root`: the
 * program's folder.
 */
export const startDoorplate = (
  args: readonly string[],
  env: Environment,
  { root = ROOT, ...options }: SpawnOptions & { readonly root?: string } = {},
): Running => {
  const child = spawn(process.execPath, [...FLAGS, join(root, 'bin/doorplate.js'), ...args], {
    ...options,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (child.pid !== undefined) reapProcess(child.pid);
  const written = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      written[name] += text;
    });
  }
  return {
    child,
    stdout: () => written.stdout,
    stderr: () => written.stderr,
    ended: once(child, 'close').then(([code]) => code as number | null),
  };
};

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export const doorplate = async (args: readonly string[], env: Environment, root = ROOT): Promise<Ended> => {
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
