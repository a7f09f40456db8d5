import { createDebts } from '../../platform/debts.ts';

/** When TLS of one partner's receivers may take the event loop. */
export interface TlsPace {
  /** Returns the milliseconds until it may go on; 0: now. */
  waitMs(): number;
  /** Adds milliseconds that it took. */
  spent(ms: number): void;
}

/** A quarter of the event loop. */
const MS_PER_SECOND = 250;
/** About twenty usual handshakes, or one chain of the costliest certificates. */
const MS_AT_ONCE = 50;

/**
 * Returns the pace of each partner. Receivers can hold back what costs most until all of a partner's connections wait for it:
 * 150 handshakes with chains of 12 KB in one turn of the event loop would stop everything for eight seconds.
 * @param now monotonic, milliseconds
 */
export const createTlsPaces = (
  now: () => number = () => performance.now(),
): ((partnerId: string) => TlsPace) => {
  const taken = createDebts(MS_PER_SECOND, now);
  return (partnerId) => ({
    waitMs: () => (Math.max(0, taken.owed(partnerId) - MS_AT_ONCE) / MS_PER_SECOND) * 1_000,
    spent: (ms) => taken.charge(partnerId, ms),
  });
};
