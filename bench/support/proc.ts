/** CPU time and memory of processes, from Linux's /proc. */
import { readdirSync, readFileSync } from 'node:fs';

const TICKS_A_SECOND = 100;
const KIB_A_MB = 1e6 / 1_024;

interface Stat {
  readonly parent: number;
  /** Seconds in user and kernel mode. */
  readonly cpu: number;
  /** The same of children that have ended. */
  readonly endedChildren: number;
}

/** Fields of `/proc/PID/stat` after the program's name, which may hold any character. */
const statOf = (pid: number | string): Stat | null => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const ticks = (first: number): number =>
      (Number(fields[first]) + Number(fields[first + 1])) / TICKS_A_SECOND;
    return { parent: Number(fields[1]), cpu: ticks(11), endedChildren: ticks(13) };
  } catch {
    return null;
  }
};

export const cpuOf = (pid: number): number => statOf(pid)?.cpu ?? 0;

/** Seconds of CPU that a process and its children have used: PostgreSQL with all its backends. */
export const cpuOfFamily = (pid: number): number => {
  const own = statOf(pid);
  if (own === null) return 0;
  let sum = own.cpu + own.endedChildren;
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? statOf(name) : null;
    if (stat?.parent === pid) sum += stat.cpu;
  }
  return sum;
};

export const residentMemory = (pid: number): number => {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / KIB_A_MB;
};
