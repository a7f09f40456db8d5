import type { EventStore } from '../event-store/port.ts';

/**
 * Asks the store for its head once for all callers that arrive while an earlier question is under way. They do not get
 * the answer to that one: it may be older than an event that they must see.
 */
export const createSharedHead = ({ head }: Pick<EventStore, 'head'>): EventStore['head'] => {
  let running: ReturnType<EventStore['head']> | null = null;
  let next: ReturnType<EventStore['head']> | null = null;

  const ask = (): ReturnType<EventStore['head']> => {
    const asked = head();
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
