export interface WorkBounds {
  /** Pieces of work under way at once. */
  readonly atOnce: number;
  /** Pieces of work that may wait for those. */
  readonly waiting: number;
}

/** Too much of this work waits already; nothing was done. */
export class WorkRefused extends Error {}

/**
 * Runs so many pieces of work at once, in their order, and lets a bounded number wait.
 * @throws WorkRefused (as a rejection) when the queue is full
 */
export const createBoundedWork = ({ atOnce, waiting }: WorkBounds) => {
  const queue: (() => void)[] = [];
  let running = 0;

  const enter = (): Promise<void> | null => {
    if (running < atOnce) {
      running += 1;
      return null;
    }
    if (queue.length >= waiting) throw new WorkRefused(`${queue.length} pieces of work wait already`);
    return new Promise((resolve) => queue.push(resolve));
  };

  const leave = (): void => {
    const next = queue.shift();
    if (next) next();
    else running -= 1;
  };

  return async <T>(work: () => Promise<T>): Promise<T> => {
    await enter();
    try {
      return await work();
    } finally {
      leave();
    }
  };
};
