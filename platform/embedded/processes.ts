import { readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

/** The embedded PostgreSQL cannot run. The message is one line that tells the operator what to change. */
export class EmbeddedPostgresError extends Error {}

/** Returns the message of any thrown value, without a stack. */
export const reason = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Identifies a process, even if its pid is reused later. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Boot id of the machine, and clock ticks from boot to the process's start. */
  readonly started: string;
}

/** Returns the identity of a process; null if it is gone or a zombie. */
export function identify(pid: number): ProcessIdentity | null {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // The second field is the program's name in parentheses, which may itself contain parentheses.
  const [state, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (state === 'Z' || state === 'X') return null;
  const FIELDS_BETWEEN_STATE_AND_START = 18;
  return { pid, started: `${bootId()}/${rest[FIELDS_BETWEEN_STATE_AND_START]}` };
}

/** Returns whether the pid is in use, even by a zombie. */
export const exists = (pid: number): boolean => read(`/proc/${pid}/stat`) !== null;

/** Returns whether this very process still runs, not another one with its pid. */
export const isAlive = ({ pid, started }: ProcessIdentity): boolean => identify(pid)?.started === started;

/**
 * Returns whether the process is a PostgreSQL server on this cluster, however it was started, or on one that cannot be seen.
 * A server works in its data folder, also after that was renamed.
 */
export function mayServe(pid: number, cluster: string): boolean {
  if (!isServer(commandOf(pid))) return false;
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(cluster);
  } catch {
    return true;
  }
}
const isServer = ([program = '']: readonly string[]): boolean => basename(program) === 'postgres';

/** Returns whether the process is a PostgreSQL server on this cluster. */
export function servesCluster(pid: number, cluster: string): boolean {
  const command = commandOf(pid);
  const folder = command[command.indexOf('-D') + 1];
  return isServer(command) && folder === cluster && identify(pid) !== null;
}

/** Polls every 20 ms until the condition holds; false after `milliseconds`. */
export async function until(condition: () => boolean, milliseconds: number): Promise<boolean> {
  const deadline = performance.now() + milliseconds;
  while (!condition()) {
    if (performance.now() > deadline) return false;
    await pause(20);
  }
  return true;
}

const commandOf = (pid: number): readonly string[] => read(`/proc/${pid}/cmdline`)?.split('\0') ?? [];

let knownBootId: string | null = null;
const bootId = (): string => {
  knownBootId ??= read('/proc/sys/kernel/random/boot_id')?.trim() ?? '';
  return knownBootId;
};

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
