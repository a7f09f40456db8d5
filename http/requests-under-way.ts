import type { IncomingMessage } from 'node:http';
import { type CallerLimits, type CallerNetworks, createHeldByCallers } from './held-by-callers.ts';

/** Requests of one caller that may be under way at once. */
export interface RequestLimit extends CallerLimits {
  /** Returns the caller of a request; null: not counted, such as a proxy that all callers share. */
  readonly callerOf: (request: IncomingMessage) => CallerNetworks | null;
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
  const held = limit && createHeldByCallers(limit);
  const callers = new WeakMap<IncomingMessage, CallerNetworks>();
  return {
    enter: (request) => {
      const caller = limit?.callerOf(request) ?? null;
      if (held === undefined || caller === null) return true;
      if (!held.take(caller)) return false;
      callers.set(request, caller);
      return true;
    },
    leave: (request) => {
      const caller = callers.get(request);
      if (caller === undefined) return;
      callers.delete(request);
      held?.giveBack(caller);
    },
  };
};
