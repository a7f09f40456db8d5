import pTimeout from 'p-timeout';

/** Resolves after `ms` milliseconds, or when the signal aborts. */
export const pause = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
  });

/** Waits for the next turn of the event loop, after what its sockets brought in this one. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Rejects with `late()` when the work takes longer than `ms` milliseconds; the work itself continues. */
export const within = <T>(work: Promise<T>, ms: number, late: () => Error): Promise<T> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(late()), Math.max(0, ms));
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });

/** Waits at most `ms` milliseconds for the work. @returns whether it has ended. @throws what the work throws */
export const endsWithin = (work: Promise<unknown>, ms: number): Promise<boolean> =>
  pTimeout(
    work.then(() => true),
    { milliseconds: Math.max(ms, 1), fallback: () => false },
  );
