/** A wait that can be ended early. */
export interface Wakeup {
  /** Resolves after `ms`, on `wake`, or when `signal` aborts; at once if woken since the last wait. */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
  wake(): void;
}

export const createWakeup = (): Wakeup => {
  let isSet = false;
  let end: (() => void) | null = null;
  return {
    wake: () => {
      isSet = true;
      end?.();
    },
    wait: (ms, signal) =>
      new Promise((resolve) => {
        const timer = setTimeout(done, ms);
        signal?.addEventListener('abort', done);
        end = done;
        if (isSet || signal?.aborted) done();
        function done(): void {
          clearTimeout(timer);
          signal?.removeEventListener('abort', done);
          isSet = false;
          end = null;
          resolve();
        }
      }),
  };
};
