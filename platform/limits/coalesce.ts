import { endsWithin, pause } from '../clock/waiting.ts';

/** Counts by name. A name whose count is zero takes no memory. */
export class Counts {
  readonly #counts = new Map<string, number>();

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  all(): number[] {
    return [...this.#counts.values()];
  }

  add(name: string, more: number): void {
    const count = this.of(name) + more;
    if (count === 0) this.#counts.delete(name);
    else this.#counts.set(name, count);
  }
}

/**
 * Coalesces callers: those of one moment share a call, and those that arrive during a call share the next one, because the result
 * of the running call may be older than their own writes. `gapMs`: a shared call begins no sooner after the one before; otherwise
 * callers who keep coming would have one after the other without a pause. `maxWaitMs`: it waits no longer for the one before, which may never be answered.
 */
export function coalesceNext<T>(
  load: () => Promise<T>,
  gapMs = 0,
  maxWaitMs = Number.POSITIVE_INFINITY,
): () => Promise<T> {
  let beganAt = Number.NEGATIVE_INFINITY;
  let running: Promise<T> | null = null;
  let next: Promise<T> | null = null;

  const start = (): Promise<T> => {
    beganAt = performance.now();
    const started = load();
    const end = (): void => {
      if (running === started) running = null;
    };
    running = started;
    started.then(end, end);
    return started;
  };

  return () => {
    if (next) return next;
    const startNow = (): Promise<T> => {
      next = null;
      return start();
    };
    const startNext = async (): Promise<T> => {
      const restMs = beganAt + gapMs - performance.now();
      if (restMs > 0) await pause(restMs);
      return startNow();
    };
    if (!running) next = Promise.resolve().then(startNow);
    else {
      const ended =
        maxWaitMs === Number.POSITIVE_INFINITY
          ? running
          : endsWithin(
              running.catch(() => null),
              maxWaitMs,
            );
      next = ended.then(startNext, startNext);
    }
    return next;
  };
}

/** The same, apart for each key. A key without a call takes no memory. */
export function coalesceNextOf<T>(
  load: (key: string) => Promise<T>,
  gapMs = 0,
  maxWaitMs = Number.POSITIVE_INFINITY,
): (key: string) => Promise<T> {
  const shared = new Map<string, () => Promise<T>>();
  const callers = new Counts();
  return async (key) => {
    const call = shared.get(key) ?? coalesceNext(() => load(key), gapMs, maxWaitMs);
    shared.set(key, call);
    callers.add(key, 1);
    try {
      return await call();
    } finally {
      callers.add(key, -1);
      if (callers.of(key) === 0) shared.delete(key);
    }
  };
}
