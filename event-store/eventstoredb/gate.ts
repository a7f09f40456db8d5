import { StoreBusy } from '../port.ts';

export interface Gate {
  /** Runs the work as soon as there is room. @throws StoreBusy when there was none in time */
  enter<T>(work: () => Promise<T>): Promise<T>;
  /** Resolves when nothing runs and nothing waits any more. */
  idle(): Promise<void>;
}

export interface GateOptions {
  readonly room: number;
  /** Milliseconds that work may wait for room. */
  readonly patienceMs: number;
}

/** Lets so much work through at a time and keeps the rest in order, for a while. */
export const createGate = ({ room, patienceMs }: GateOptions): Gate => {
  const waiting = new Set<() => void>();
  const watching = new Set<() => void>();
  let running = 0;

  const admission = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const admit = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const timer = setTimeout(() => {
        waiting.delete(admit);
        reject(new StoreBusy(`${running} calls under way and ${waiting.size} waiting`));
      }, patienceMs);
      waiting.add(admit);
    });

  const leave = (): void => {
    const [next] = waiting;
    if (next) {
      waiting.delete(next);
      next(); // its place stays taken
      return;
    }
    running -= 1;
    if (running > 0) return;
    for (const resolve of watching) resolve();
    watching.clear();
  };

  return {
    enter: async (work) => {
      if (running < room) running += 1;
      else await admission();
      try {
        return await work();
      } finally {
        leave();
      }
    },
    idle: () => (running === 0 ? Promise.resolve() : new Promise((resolve) => watching.add(resolve))),
  };
};
