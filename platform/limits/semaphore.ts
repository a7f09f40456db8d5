/** Too much work is running or waiting; nothing was done. */
export class WorkRefused extends Error {}

export interface Semaphore {
  /** Runs the work as soon as a slot is free. @throws the refusal if none is free in time or the queue is full */
  enter<T>(work: () => Promise<T>): Promise<T>;
  isIdle(): boolean;
  idle(): Promise<void>;
}

export interface SemaphoreOptions {
  /** Maximum running work. */
  readonly limit: number;
  /** Maximum waiting work. Default: unlimited. */
  readonly maxWaiting?: number;
  /** Maximum wait, milliseconds. Default: unlimited. */
  readonly maxWaitMs?: number;
  /** Makes the error of rejected work from a one-line reason. Default: WorkRefused. */
  readonly refusal?: (why: string) => Error;
}

/** Limits concurrency, with a bounded FIFO queue. p-queue and p-limit bound neither the queue nor the wait in it. */
export function createSemaphore({
  limit,
  maxWaiting = Number.POSITIVE_INFINITY,
  maxWaitMs,
  refusal = (why) => new WorkRefused(why),
}: SemaphoreOptions): Semaphore {
  const waiting = new Set<() => void>();
  const watching = new Set<() => void>();
  let running = 0;

  const refused = (): Error => refusal(`${running} running and ${waiting.size} waiting`);

  function admission(): Promise<void> {
    return new Promise((resolve, reject) => {
      if (waiting.size >= maxWaiting) return reject(refused());
      const admit = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const giveUp = (): void => {
        waiting.delete(admit);
        reject(refused());
      };
      const timer = maxWaitMs === undefined ? undefined : setTimeout(giveUp, maxWaitMs);
      waiting.add(admit);
    });
  }

  function leave(): void {
    const [next] = waiting;
    if (next) {
      waiting.delete(next);
      next(); // inherits the slot
      return;
    }
    running -= 1;
    if (running > 0) return;
    for (const resolve of watching) resolve();
    watching.clear();
  }

  return {
    enter: async (work) => {
      if (running < limit) running += 1;
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
}

/** Limits concurrency by key, by a semaphore for as long as work of the key runs or waits. `options`: of each semaphore. */
export function createSemaphores(options: SemaphoreOptions) {
  const semaphores = new Map<string, Semaphore>();
  return {
    enter: async <T>(key: string, work: () => Promise<T>): Promise<T> => {
      const semaphore = semaphores.get(key) ?? createSemaphore(options);
      semaphores.set(key, semaphore);
      try {
        return await semaphore.enter(work);
      } finally {
        if (semaphore.isIdle()) semaphores.delete(key);
      }
    },
  };
}
