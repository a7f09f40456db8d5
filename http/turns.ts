import { AsyncResource } from 'node:async_hooks';
import type { IncomingMessage } from 'node:http';

/** Time that requests get in a turn of the event loop. */
const TURN_MS = 3;
/** Requests that waited and are run in a turn at most, each as an immediate of its own: what one leaves to promises counts before the next. */
const MOST_THAT_WAITED = 128;

/** Whose turn a request takes, and the turns. */
export interface RequestTurns {
  readonly turns: Turns;
  readonly ownerOf: (request: IncomingMessage) => string;
}

/** Continues a request, in one of the next turns where there is no time left in this one, and in its own asynchronous context. */
export type GoOn = (request: IncomingMessage, run: () => void) => void;

/**
 * Returns a function for what follows a wait. Hundreds of requests may have waited for one answer of the database, or have the rest of
 * their bodies arrive together.
 */
export const goOnIn =
  ({ turns, ownerOf }: RequestTurns): GoOn =>
  (request, run) => {
    if (turns.hasTime()) run();
    else turns.inNext(ownerOf(request), AsyncResource.bind(run));
  };

export interface Turns {
  /** The number of the turn of the event loop. */
  current(): number;
  /** Whether requests have time left in this turn. */
  hasTime(): boolean;
  /** Runs something once in one of the next turns, in any asynchronous context. */
  inNext(owner: string, run: () => void): void;
}

/**
 * Divides the turns of the event loop among requests. In a turn they get some milliseconds, because answers of the database are taken, and
 * a new connection is accepted, once a turn: requests of hundreds of connections, or some that cost a millisecond each, would keep
 * all others waiting for seconds. What there is no time for waits for the next turn, in which the owners come one after the other.
 */
export const createTurns = (): Turns => {
  const waiting = new Map<string, Set<() => void>>();
  /** What comes to wait while others are run, which is for the turn after. */
  let added: (readonly [owner: string, run: () => void])[] | null = null;
  let turn = 0;
  let begunAt: number | null = null;
  let willRun = false;

  const begin = (): number => {
    setImmediate(end);
    if (waiting.size > 0) runSoon();
    begunAt = performance.now();
    return begunAt;
  };
  const runSoon = (): void => {
    if (willRun) return;
    willRun = true;
    for (let nth = 0; nth < MOST_THAT_WAITED; nth += 1) setImmediate(runNext);
    setImmediate(takeAdded);
  };
  const hasTime = (): boolean => performance.now() - (begunAt ?? begin()) < TURN_MS;
  const end = (): void => {
    begunAt = null;
    turn += 1;
    if (willRun) added = [];
    willRun = false;
  };
  const runNext = (): void => {
    if (waiting.size > 0 && hasTime()) takeNext(waiting)?.();
  };
  const add = (owner: string, run: () => void): void => {
    if (begunAt === null) begin();
    const own = waiting.get(owner) ?? new Set();
    waiting.set(owner, own.add(run));
    runSoon();
  };
  const takeAdded = (): void => {
    const next = added ?? [];
    added = null;
    for (const [owner, run] of next) add(owner, run);
  };

  return {
    current: () => {
      if (begunAt === null) begin();
      return turn;
    },
    hasTime,
    inNext: (owner, run) => {
      if (added) added.push([owner, run]);
      else add(owner, run);
    },
  };
};

/** Takes the first of the first owner, whose others come behind those of all owners. */
const takeNext = (waiting: Map<string, Set<() => void>>): (() => void) | undefined => {
  const [owner, own] = waiting.entries().next().value as [string, Set<() => void>];
  const [run] = own;
  own.delete(run as () => void);
  waiting.delete(owner);
  if (own.size > 0) waiting.set(owner, own);
  return run;
};
