/** Starts the program's processes as an operator does: for the calibration, tests, storms and the bench. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from './free-port.ts';

export type Environment = Readonly<Record<string, string>>;

/** The flags of `npm start` and of the program's first line. */
const FLAGS = ['--max-semi-space-size=16', '--disable-warning=ExperimentalWarning'];
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const READY_MS = 60_000;
const READINESS_TIMEOUT_MS = 3_000;
const POLL_MS = 20;
const END_MS = 12_000;

export interface Running {
  readonly child: ChildProcess;
  /** Everything that it has written so far. */
  stdout(): string;
  stderr(): string;
  readonly ended: Promise<number | null>;
}

export interface RunOptions extends SpawnOptions {
  /** The folder of the program. Default: this one. */
  readonly root?: string | undefined;
}

/** Runs `doorplate` with this environment, and of this process's own variables with the path alone. */
export const runDoorplate = (
  args: readonly string[],
  env: Environment,
  { root = ROOT, ...options }: RunOptions = {},
): Running => {
  const child = spawn(process.execPath, [...FLAGS, join(root, 'bin/doorplate.js'), ...args], {
    ...options,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
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

export interface ServingOptions {
  readonly role: 'all' | 'api' | 'workers';
  readonly dataDir: string;
  /** Its further variables. */
  readonly env: Environment;
  /** Called with each process that is started. */
  readonly onStart?: (pid: number) => void;
  /** Called when the process ends without having been stopped. */
  readonly onUnexpectedEnd?: (code: number | null) => void;
}

/** A process of `doorplate serve` on free ports of 127.0.0.1, which is started, stopped and started again. */
export interface Serving {
  readonly url: string;
  readonly operations: string;
  /** Its configuration, which a command needs as well to work beside it. */
  readonly env: Environment;
  /** 0 before the first start. */
  readonly pid: number;
  /** `root`: the folder of another release's program, from this start on. */
  start(root?: string): void;
  signal(name: NodeJS.Signals): void;
  /** Sends SIGTERM, or another signal, and waits for the end. @returns the exit code; null if it was killed or does not run */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  /** Asks `/readyz`. @returns the status and the text */
  readiness(): Promise<string>;
  isReady(): Promise<boolean>;
  /** @throws Error with the process's log when it ends, or is not ready within a minute */
  ready(): Promise<void>;
  isRunning(): boolean;
  /** What it has written, also before it was started again. */
  stdout(): string;
  stderr(): string;
}

/** Prepares a process; `start` starts it. */
export const prepareServing = async (options: ServingOptions): Promise<Serving> => {
  const { role, dataDir, onStart, onUnexpectedEnd } = options;
  const [port, opsPort] = [await freePort(), await freePort()];
  const env = { DATA_DIR: dataDir, PORT: String(port), OPS_PORT: String(opsPort), ...options.env };
  const operations = `http://127.0.0.1:${opsPort}`;
  let root: string | undefined;
  let pid = 0;
  let running: Running | null = null;
  const earlier = { stdout: '', stderr: '' };
  const keepOutput = (ended: Running): void => {
    earlier.stdout += ended.stdout();
    earlier.stderr += ended.stderr();
  };

  const readiness = async (): Promise<string> => {
    const signal = AbortSignal.timeout(READINESS_TIMEOUT_MS);
    const answer = await fetch(`${operations}/readyz`, { signal });
    return `${answer.status} ${await answer.text()}`;
  };
  const isReady = (): Promise<boolean> =>
    readiness().then(
      (text) => text.startsWith('200 '),
      () => false,
    );
  const stderr = (): string => `${earlier.stderr}${running?.stderr() ?? ''}`;

  return {
    url: `http://127.0.0.1:${port}`,
    operations,
    env,
    get pid() {
      return pid;
    },
    start: (other = root) => {
      root = other;
      const started = runDoorplate(['serve', '--role', role], env, { root });
      running = started;
      pid = started.child.pid ?? 0;
      if (pid > 0) onStart?.(pid);
      void started.ended.then((code) => {
        if (running !== started) return;
        running = null;
        keepOutput(started);
        onUnexpectedEnd?.(code);
      });
    },
    signal: (name) => void running?.child.kill(name),
    stop: async (name = 'SIGTERM') => {
      const ending = running;
      if (ending === null) return null;
      running = null;
      ending.child.kill(name);
      // A frozen process cannot handle a signal.
      ending.child.kill('SIGCONT');
      const force = setTimeout(() => ending.child.kill('SIGKILL'), END_MS);
      const code = await ending.ended;
      clearTimeout(force);
      keepOutput(ending);
      return code;
    },
    readiness,
    isReady,
    ready: async () => {
      for (const deadline = performance.now() + READY_MS; !(await isReady()); await pause(POLL_MS)) {
        const failed = running === null ? 'has ended' : 'is not ready in time';
        if (running === null || performance.now() > deadline)
          throw new Error(`the service ${failed}:\n${stderr().slice(-2_000)}`);
      }
    },
    isRunning: () => running !== null,
    stdout: () => `${earlier.stdout}${running?.stdout() ?? ''}`,
    stderr,
  };
};
