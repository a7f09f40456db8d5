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

/** Waits at most `ms` milliseconds for the work. @returns whether it has ended. @throws what the work throws */
export const endsWithin = (work: Promise<unknown>, ms: number): Promise<boolean> =>
  pTimeout(
    work.then(() => true),
    { milliseconds: Math.max(ms, 1), fallback: () => false },
  );
