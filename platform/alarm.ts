/** A pause that can be ended early. */
export interface Alarm {
  /** Resolves after `ms`, when rung, or when `signal` aborts; at once when rung since the last wait. */
  wait(ms: number, signal?: AbortSignal): Promise<void>;
  ring(): void;
}

export const createAlarm = (): Alarm => {
  let rung = false;
  let end: (() => void) | null = null;
  return {
    ring: () => {
      rung = true;
      end?.();
    },
    wait: (ms, signal) =>
      new Promise((resolve) => {
        const timer = setTimeout(done, ms);
        signal?.addEventListener('abort', done);
        end = done;
        if (rung || signal?.aborted) done();
        function done(): void {
          clearTimeout(timer);
          signal?.removeEventListener('abort', done);
          rung = false;
          end = null;
          resolve();
        }
      }),
  };
};
