import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

/** A process, told apart from a later one that got the same number. */
export interface ProcessIdentity {
  readonly pid: number;
  /** The machine's boot and the clock ticks from there to the process's start. */
  readonly started: string;
}

/** Who this is; null where the process is gone, or a zombie that only waits for its parent. */
export function identify(pid: number): ProcessIdentity | null {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // The second field is the program's name in parentheses and may hold anything, parentheses included.
  const [state, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (state === 'Z' || state === 'X') return null;
  const FIELDS_BETWEEN_STATE_AND_START = 18;
  return { pid, started: `${bootId()}/${rest[FIELDS_BETWEEN_STATE_AND_START]}` };
}

/** Whether the number is taken, were it by a zombie. */
export const exists = (pid: number): boolean => read(`/proc/${pid}/stat`) !== null;

/** Whether exactly this process, and not another with its number, still runs. */
export const isAlive = ({ pid, started }: ProcessIdentity): boolean => identify(pid)?.started === started;

/** Whether the process is some PostgreSQL server. */
export const isPostgres = (pid: number): boolean => basename(commandOf(pid)[0] ?? '') === 'postgres';

/** Whether the process is a PostgreSQL server on this data folder. */
export function servesCluster(pid: number, cluster: string): boolean {
  const command = commandOf(pid);
  const folder = command[command.indexOf('-D') + 1];
  return isPostgres(pid) && folder === cluster && identify(pid) !== null;
}

/** Asks every few milliseconds until it is so; false if it was not within `milliseconds`. */
export async function until(condition: () => boolean, milliseconds: number): Promise<boolean> {
  const deadline = performance.now() + milliseconds;
  while (!condition()) {
    if (performance.now() > deadline) return false;
    await pause(20);
  }
  return true;
}

const commandOf = (pid: number): readonly string[] => read(`/proc/${pid}/cmdline`)?.split('\0') ?? [];

const bootId = (): string => read('/proc/sys/kernel/random/boot_id')?.trim() ?? '';

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
