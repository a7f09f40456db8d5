/** Too much of this work is under way or waits already; nothing was done. */
export class WorkRefused extends Error {}

export interface Gate {
  /** Runs the work as soon as there is room. @throws the gate's refusal when there is none in time, or too much waits */
  enter<T>(work: () => Promise<T>): Promise<T>;
  /** Whether nothing runs and nothing waits. */
  isIdle(): boolean;
  /** Resolves when nothing runs and nothing waits any more. */
  idle(): Promise<void>;
}

export interface GateOptions {
  /** Pieces of work at once. */
  readonly room: number;
  /** Pieces of work that may wait for room. Default: any number. */
  readonly waiting?: number;
  /** Milliseconds that work may wait for room. Default: for ever. */
  readonly patienceMs?: number;
  /** Makes the error of work that is not run. `why`: in one line. Default: WorkRefused. */
  readonly refusal?: (why: string) => Error;
}

/** Lets so much work through at a time and keeps a bounded rest in order. */
export const createGate = ({
  room,
  waiting: mostWaiting = Number.POSITIVE_INFINITY,
  patienceMs,
  refusal = (why) => new WorkRefused(why),
}: GateOptions): Gate => {
  const waiting = new Set<() => void>();
  const watching = new Set<() => void>();
  let running = 0;

  const refused = (): Error => refusal(`${running} under way and ${waiting.size} waiting`);

  const admission = (): Promise<void> =>
    new Promise((resolve, reject) => {
      if (waiting.size >= mostWaiting) return reject(refused());
      const admit = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const giveUp = (): void => {
        waiting.delete(admit);
        reject(refused());
      };
      const timer = patienceMs === undefined ? undefined : setTimeout(giveUp, patienceMs);
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
    isIdle: () => running === 0,
    idle: () => (running === 0 ? Promise.resolve() : new Promise((resolve) => watching.add(resolve))),
  };
};
