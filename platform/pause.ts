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
export const endsWithin = async (work: Promise<unknown>, ms: number): Promise<boolean> => {
  const late = new AbortController();
  try {
    return await Promise.race([work.then(() => true), pause(ms, late.signal).then(() => false)]);
  } finally {
    late.abort();
  }
};
