import type { IncomingMessage } from 'node:http';

export interface RequestLimit {
  /** Requests of one caller that may be under way at once. */
  readonly perCaller: number;
  /** Returns the caller of a request; null: not counted, such as a proxy that all callers share. */
  readonly callerOf: (request: IncomingMessage) => string | null;
}

export interface RequestsUnderWay {
  /** @returns whether the caller may have one more under way */
  enter(request: IncomingMessage): boolean;
  /** To be called when the work for a request has ended, also where its caller has left. May be repeated. */
  leave(request: IncomingMessage): void;
}

/**
 * Counts requests under way by their callers. A connection can bring tens of thousands of requests without waiting for
 * an answer, and all would wait for the database before those of other callers.
 */
export const countRequests = (limit: RequestLimit | undefined): RequestsUnderWay => {
  const counts = new Map<string, number>();
  const callers = new WeakMap<IncomingMessage, string>();
  return {
    enter: (request) => {
      const caller = limit?.callerOf(request) ?? null;
      if (limit === undefined || caller === null) return true;
      const count = counts.get(caller) ?? 0;
      if (count >= limit.perCaller) return false;
      counts.set(caller, count + 1);
      callers.set(request, caller);
      return true;
    },
    leave: (request) => {
      const caller = callers.get(request);
      if (caller === undefined) return;
      callers.delete(request);
      const left = (counts.get(caller) ?? 1) - 1;
      if (left === 0) counts.delete(caller);
      else counts.set(caller, left);
    },
  };
};
