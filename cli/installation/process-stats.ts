/** CPU time and memory of processes, from Linux's /proc. */
import { readdirSync, readFileSync } from 'node:fs';

const TICKS_A_SECOND = 100;
const KIB_A_MB = 1e6 / 1_024;
const BYTES_A_KIB = 1_024;

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

/** Returns the seconds of CPU that a process has used; 0 if it is gone. */
export const cpuOf = (pid: number): number => statOf(pid)?.cpu ?? 0;

const childrenOf = (pid: number): string[] =>
  readdirSync('/proc').filter((name) => /^\d+$/.test(name) && statOf(name)?.parent === pid);

/** Returns the seconds of CPU that a process and its children have used: PostgreSQL with all its backends. */
export const cpuOfFamily = (pid: number): number => {
  const own = statOf(pid);
  if (own === null) return 0;
  return childrenOf(pid).reduce((sum, child) => sum + cpuOf(Number(child)), own.cpu + own.endedChildren);
};

/** Returns a process's resident memory in MB. */
export const residentMemory = (pid: number): number => kib(`/proc/${pid}/status`, 'VmRSS') / KIB_A_MB;

/** Returns the bytes of memory of a process and its children, shared pages counted once. */
export const memoryOfFamily = (pid: number): number =>
  [String(pid), ...childrenOf(pid)].reduce((sum, one) => sum + kib(`/proc/${one}/smaps_rollup`, 'Pss'), 0) *
  BYTES_A_KIB;

/** Returns the bytes of a process that it shares with no other. */
export const privateMemory = (pid: number): number =>
  (kib(`/proc/${pid}/smaps_rollup`, 'Private_Clean') + kib(`/proc/${pid}/smaps_rollup`, 'Private_Dirty')) *
  BYTES_A_KIB;

/** A field of a file of /proc in KiB; 0 if the process is gone. */
const kib = (file: string, field: string): number => {
  try {
    const line = readFileSync(file, 'utf8')
      .split('\n')
      .find((one) => one.startsWith(`${field}:`));
    return Number.parseInt(line?.slice(field.length + 1) ?? '0', 10);
  } catch {
    return 0;
  }
};
