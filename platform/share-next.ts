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
