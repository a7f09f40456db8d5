/** The service's processes in a storm: started, killed, frozen and watched. */
import { readFileSync } from 'node:fs';
import { removeDataFolder } from '../../cli/installation/data-folder.ts';
import { prepareServing, type Serving } from '../../cli/installation/serving.ts';
import { doorplate, type Ended, type Environment } from '../support/doorplate.ts';
import { reapProcess } from '../support/reaped.ts';
import { makeTestFolder } from '../support/temporary-folder.ts';

export type Role = 'api' | 'workers';

export interface StormProcess extends Pick<Serving, 'url' | 'start' | 'isReady' | 'readiness'> {
  readonly name: string;
  readonly role: Role;
  kill(): Promise<void>;
  /** SIGTERM. @returns the exit code */
  terminate(): Promise<number | null>;
  freeze(): void;
  thaw(): void;
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
const BYTES_PER_PAGE = 4_096;

export const createProcess = async (options: ProcessOptions): Promise<StormProcess> => {
  const { name, role, env, onUnexpectedEnd } = options;
  const dataDir = makeTestFolder();
  const serving = await prepareServing({ role, dataDir, env, onStart: reapProcess, onUnexpectedEnd });
  const { url, start, stop, signal, isReady, readiness, isRunning, stderr } = serving;
  let root: string | undefined;
  return {
    name,
    role,
    url,
    start: (other = root) => {
      root = other;
      start(root);
    },
    isReady,
    readiness,
    kill: async () => void (await stop('SIGKILL')),
    terminate: () => stop(),
    freeze: () => signal('SIGSTOP'),
    thaw: () => signal('SIGCONT'),
    residentMemory: () => (isRunning() ? residentMemoryOf(serving.pid) : null),
    log: stderr,
    lastLogLines: () => stderr().trimEnd().split('\n').slice(-LOG_LINES).join('\n'),
    cli: (...args) => doorplate(args, serving.env, root),
    remove: async () => {
      await stop('SIGKILL');
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
