/** The resident memory of a storm's processes over time. */
import type { StormProcess } from './processes.ts';
import type { Violations } from './violations.ts';

export interface MemorySample {
  readonly process: string;
  /** Milliseconds of the monotonic clock. */
  readonly at: number;
  readonly mib: number;
}

/** A short storm shows how processes warm up. */
const MIN_CHECKED_MS = 10 * 60_000;
const MAX_GROWTH = 1.25;
const SAMPLE_EVERY_MS = 2_000;

/** Takes samples until it is stopped. */
export const watchMemory = (processes: readonly StormProcess[]) => {
  const samples: MemorySample[] = [];
  const timer = setInterval(() => {
    for (const one of processes) {
      const mib = one.residentMemory();
      if (mib !== null) samples.push({ process: one.name, at: performance.now(), mib });
    }
  }, SAMPLE_EVERY_MS);
  timer.unref();
  return { samples, stop: () => clearInterval(timer) };
};

export interface MemoryPeaks {
  readonly process: string;
  readonly firstHalfMib: number;
  readonly secondHalfMib: number;
}

/** The highest memory of each process in both halves of the storm. */
export const peaksOf = (
  samples: readonly MemorySample[],
  startedAt: number,
  endedAt: number,
): MemoryPeaks[] => {
  const middle = (startedAt + endedAt) / 2;
  const peak = (of: readonly MemorySample[]): number => Math.round(Math.max(0, ...of.map(({ mib }) => mib)));
  const names = [...new Set(samples.map(({ process }) => process))];
  return names.map((process) => {
    const own = samples.filter((sample) => sample.process === process);
    return {
      process,
      firstHalfMib: peak(own.filter(({ at }) => at < middle)),
      secondHalfMib: peak(own.filter(({ at }) => at >= middle)),
    };
  });
};

/** Memory does not grow: the second half needs about what the first half needed. */
export const checkMemory = (
  peaks: readonly MemoryPeaks[],
  durationMs: number,
  violations: Violations,
): void => {
  if (durationMs < MIN_CHECKED_MS) return;
  for (const { process, firstHalfMib, secondHalfMib } of peaks) {
    if (secondHalfMib <= firstHalfMib * MAX_GROWTH) continue;
    violations.add(
      'memory stays flat',
      `${process}: first half ${firstHalfMib} MiB, second ${secondHalfMib} MiB`,
    );
  }
};
