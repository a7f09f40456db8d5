/**
 * Asks once for all callers that arrive while an earlier question is under way. They do not get the answer to that one:
 * it may be older than what they have just done.
 */
export const shareNext = <T>(question: () => Promise<T>): (() => Promise<T>) => {
  let running: Promise<T> | null = null;
  let next: Promise<T> | null = null;

  const ask = (): Promise<T> => {
    const asked = question();
    const end = (): void => {
      if (running === asked) running = null;
    };
    running = asked;
    asked.then(end, end);
    return asked;
  };

  return () => {
    if (next) return next;
    if (!running) return ask();
    const askNext = () => {
      next = null;
      return ask();
    };
    next = running.then(askNext, askNext);
    return next;
  };
};
