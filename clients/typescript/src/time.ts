/** The client's clock; tests replace it. */
export interface Time {
  /** Monotonic milliseconds. */
  now(): number;
  /** @throws the signal's reason, once it is aborted */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** A longer timer would end at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const realTime: Time = {
  now: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const wake = (): void => {
        signal?.removeEventListener('abort', stop);
        resolve();
      };
      const timer = setTimeout(wake, Math.min(ms, LONGEST_TIMER_MS));
      const stop = (): void => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', stop, { once: true });
    }),
};
