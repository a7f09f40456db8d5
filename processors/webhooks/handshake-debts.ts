import { createDebts } from '../../platform/debts.ts';

/** Event loop time that TLS handshakes of each partner's receivers have cost in this process. */
export interface HandshakeDebts {
  /** Adds the time of handshakes, in milliseconds. */
  charge(partnerId: string, ms: number, outcome: 'succeeded' | 'failed'): void;
  /** Returns how many concurrent attempts the partner may have; infinity if not limited. */
  roomOf(partnerId: string): number;
}

/** Above the first, one attempt at a time; above the second, none. About 300 and 2,000 usual failed handshakes. */
const ONE_AT_A_TIME_MS = 500;
const NONE_MS = 3_000;
/** Debt forgiven per second: the share of the event loop that one partner may take permanently. */
const FORGIVEN_MS_PER_SECOND = 50;

/** A receiver that closes each connection may be honest: its handshakes count for a fifth, so they may take 25 % of the loop. */
const WEIGHT = { failed: 1, succeeded: 0.2 } as const;

/**
 * Limits the cost of receivers that fail TLS handshakes on purpose. Rejecting a chain of 12 KB of certificates with large
 * RSA exponents takes 50 ms, and an endpoint's circuit breaker stays closed if every tenth attempt succeeds.
 * @param now monotonic, milliseconds
 */
export const createHandshakeDebts = (now: () => number = () => performance.now()): HandshakeDebts => {
  const debts = createDebts(FORGIVEN_MS_PER_SECOND, now);
  return {
    charge: (partnerId, ms, outcome) => debts.charge(partnerId, ms * WEIGHT[outcome]),
    roomOf: (partnerId) => {
      const owed = debts.owed(partnerId);
      if (owed <= ONE_AT_A_TIME_MS) return Number.POSITIVE_INFINITY;
      return owed <= NONE_MS ? 1 : 0;
    },
  };
};
