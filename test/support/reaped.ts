import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { identify } from '../../platform/embedded/processes.ts';
import type { Charge } from './reaper.ts';

let reaper: ChildProcess | null = null;

/** Ends a process, or what runs on a data folder, together with this process, however it ends. */
export const reap = (charge: Charge): void => {
  reaper ??= startReaper();
  reaper.stdin?.write(`${JSON.stringify(charge)}\n`);
};

export const reapProcess = (pid: number): void => {
  const identity = identify(pid);
  if (identity) reap({ process: identity });
};

const startReaper = (): ChildProcess => {
  const script = fileURLToPath(new URL('./reaper.ts', import.meta.url));
  // In a separate session, so that a Ctrl-C in the terminal does not reach it.
  const child = spawn(process.execPath, [script], { detached: true, stdio: ['pipe', 'ignore', 'inherit'] });
  child.unref();
  child.stdin?.on('error', () => {});
  (child.stdin as unknown as { unref(): void }).unref();
  return child;
};
