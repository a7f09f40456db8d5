import { createDebts } from '../../platform/debts.ts';

/** When TLS of one partner's receivers takes bytes. */
export interface TlsPace {
  /**
   * Calls `take`, which returns how long it took, milliseconds, in a later turn of the event loop.
   * @returns withdraws it
   */
  whenDue(take: () => number): () => void;
}

/** A quarter of the thread. */
const MS_PER_SECOND = 250;
/** About twenty usual handshakes, or one chain of the costliest certificates. */
const MS_AT_ONCE = 50;
/** Then the event loop has a turn. */
const MS_PER_TURN = 5;

/**
 * Returns the pace of each partner. Receivers can hold back what costs most until all of a partner's connections wait for it:
 * 150 handshakes with chains of 12 KB in one turn of the event loop would stop everything for eight seconds. Partners take
 * turns, and who has taken least goes first, because many may use the same receiver.
 * @param now monotonic, milliseconds
 */
export const createTlsPaces = (
  now: () => number = () => performance.now(),
): ((partnerId: string) => TlsPace) => {
  const taken = createDebts(MS_PER_SECOND, now);
  const waiting = new Map<string, Set<() => number>>();
  const order = createOrder();
  let immediate: NodeJS.Immediate | undefined;
  let timer: NodeJS.Timeout | undefined;

  const waitMsOf = (partnerId: string): number =>
    (Math.max(0, taken.owed(partnerId) - MS_AT_ONCE) / MS_PER_SECOND) * 1_000;

  const withdraw = (partnerId: string, take: () => number): void => {
    const own = waiting.get(partnerId);
    own?.delete(take);
    if (own?.size === 0) waiting.delete(partnerId);
  };

  const serve = (partnerId: string): void => {
    const [take] = waiting.get(partnerId) ?? [];
    if (take === undefined) return;
    withdraw(partnerId, take);
    const ms = take();
    taken.charge(partnerId, ms);
    order.served(partnerId, ms);
  };

  const run = (): void => {
    immediate = undefined;
    const until = now() + MS_PER_TURN;
    do {
      const next = order.first([...waiting.keys()].filter((partnerId) => waitMsOf(partnerId) === 0));
      if (next === undefined) break;
      serve(next);
    } while (now() < until);
    schedule();
  };

  const schedule = (): void => {
    clearTimeout(timer);
    if (immediate !== undefined || waiting.size === 0) return;
    const waitMs = Math.min(...[...waiting.keys()].map(waitMsOf));
    if (waitMs === 0) immediate = setImmediate(run);
    else timer = setTimeout(run, waitMs);
  };

  return (partnerId) => ({
    whenDue: (take) => {
      const own = waiting.get(partnerId) ?? new Set();
      waiting.set(partnerId, own.add(take));
      schedule();
      return () => withdraw(partnerId, take);
    },
  });
};

/**
 * Start-time fair queueing: a partner's virtual time advances by what it takes, and the one with the least is first. One that
 * has not waited begins at the time of the one served last, so it saves nothing up.
 */
const createOrder = () => {
  const times = new Map<string, number>();
  let current = 0;
  const timeOf = (partnerId: string): number => Math.max(times.get(partnerId) ?? 0, current);
  return {
    first: (partnerIds: readonly string[]): string | undefined =>
      partnerIds.toSorted((one, other) => timeOf(one) - timeOf(other))[0],
    served: (partnerId: string, ms: number): void => {
      current = timeOf(partnerId);
      times.set(partnerId, current + ms);
    },
  };
};
