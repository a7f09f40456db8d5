/** The service's processes in a storm: started, killed, frozen and watched. */
import { readFileSync } from 'node:fs';
import { makeDataFolder, removeDataFolder } from '../support/data-folder.ts';
import {
  doorplate,
  type Ended,
  type Environment,
  type Running,
  startDoorplate,
} from '../support/doorplate.ts';
import { freePort } from '../support/ports.ts';
import { reap } from '../support/reaped.ts';

export type Role = 'api' | 'workers';

export interface StormProcess {
  readonly name: string;
  readonly role: Role;
  readonly url: string;
  /** `root`: the folder of another release's program, from this start on. */
  start(root?: string): void;
  kill(): Promise<void>;
  /** SIGTERM. @returns the exit code */
  terminate(): Promise<number | null>;
  freeze(): void;
  thaw(): void;
  isReady(): Promise<boolean>;
  readiness(): Promise<string>;
  /** Resident memory in MiB; null while it does not run. */
  residentMemory(): number | null;
  /** Everything that it has logged since its first start. */
  log(): string;
  lastLogLines(): string;
  cli(...args: string[]): Promise<Ended>;
  remove(): Promise<void>;
}

export interface ProcessOptions {
  readonly name: string;
  readonly role: Role;
  readonly env: Environment;
  /** Called when the process ends without a stop. */
  readonly onUnexpectedEnd: (code: number | null) => void;
}

const LOG_LINES = 25;
const READY_TIMEOUT_MS = 3_000;
const BYTES_PER_PAGE = 4_096;

export const createProcess = async (options: ProcessOptions): Promise<StormProcess> => {
  const { name, role, onUnexpectedEnd } = options;
  const dataDir = makeDataFolder();
  reap({ folder: dataDir });
  const [port, opsPort] = [await freePort(), await freePort()];
  const env = { DATA_DIR: dataDir, PORT: String(port), OPS_PORT: String(opsPort), ...options.env };
  let running: Running | null = null;
  let root: string | undefined;
  let earlierLog = '';
  const log = (): string => `${earlierLog}${running?.stderr() ?? ''}`;

  const signal = (name: NodeJS.Signals): void => void running?.child.kill(name);
  const end = async (name: NodeJS.Signals): Promise<number | null> => {
    const ending = running;
    if (ending === null) return null;
    running = null;
    ending.child.kill(name);
    // A frozen process cannot handle a signal.
    ending.child.kill('SIGCONT');
    const code = await ending.ended;
    earlierLog += ending.stderr();
    return code;
  };
  const readiness = async (): Promise<string> => {
    const answer = await fetch(`http://127.0.0.1:${opsPort}/readyz`, {
      signal: AbortSignal.timeout(READY_TIMEOUT_MS),
    });
    return `${answer.status} ${await answer.text()}`;
  };

  return {
    name,
    role,
    url: `http://127.0.0.1:${port}`,
    start: (other = root) => {
      root = other;
      const started = startDoorplate(['serve', '--role', role], env, root === undefined ? {} : { root });
      running = started;
      void started.ended.then((code) => {
        if (running !== started) return;
        running = null;
        earlierLog += started.stderr();
        onUnexpectedEnd(code);
      });
    },
    kill: async () => void (await end('SIGKILL')),
    terminate: () => end('SIGTERM'),
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    readiness,
    isReady: () =>
      readiness().then(
        (text) => text.startsWith('200 '),
        () => false,
      ),
    residentMemory: () => (running?.child.pid === undefined ? null : residentMemoryOf(running.child.pid)),
    log,
    lastLogLines: () => log().trimEnd().split('\n').slice(-LOG_LINES).join('\n'),
    cli: (...args) => doorplate(args, env, root),
    remove: async () => {
      await end('SIGKILL');
      await removeDataFolder(dataDir);
    },
  };
};

const residentMemoryOf = (pid: number): number | null => {
  try {
    const pages = Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]);
    return (pages * BYTES_PER_PAGE) / 2 ** 20;
  } catch {
    return null;
  }
};
