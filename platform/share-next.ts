import { Counts } from './counts.ts';

/**
 * Coalesces callers: those that arrive during a call share the next one, because the result of the running call may be older
 * than their own writes.
 */
export const shareNext = <T>(load: () => Promise<T>): (() => Promise<T>) => {
  let running: Promise<T> | null = null;
  let next: Promise<T> | null = null;

  const start = (): Promise<T> => {
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
    if (!running) return start();
    const startNext = () => {
      next = null;
      return start();
    };
    next = running.then(startNext, startNext);
    return next;
  };
};

/** The same, apart for each key. A key without a call takes no memory. */
export const shareNextOf = <T>(load: (key: string) => Promise<T>): ((key: string) => Promise<T>) => {
  const shared = new Map<string, () => Promise<T>>();
  const callers = new Counts();
  return async (key) => {
    const call = shared.get(key) ?? shareNext(() => load(key));
    shared.set(key, call);
    callers.add(key, 1);
    try {
      return await call();
    } finally {
      callers.add(key, -1);
      if (callers.of(key) === 0) shared.delete(key);
    }
  };
};
