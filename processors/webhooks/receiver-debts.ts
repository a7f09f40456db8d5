import { createDebts } from '../../platform/debts.ts';

/** Handshakes that succeeded; handshakes that failed; responses whose decryption took unusually long. */
export type ReceiverCost = 'succeeded' | 'failed' | 'response';

/** Event loop time that each partner's receivers have cost in this process, beyond usual responses. */
export interface ReceiverDebts {
  /** Adds milliseconds. */
  charge(partnerId: string, ms: number, kind: ReceiverCost): void;
  /** Returns how many concurrent attempts the partner may have; infinity if not limited. */
  roomOf(partnerId: string): number;
}

/** Above the first, one attempt at a time; above the second, none. About 300 and 2,000 usual failed handshakes. */
const ONE_AT_A_TIME_MS = 500;
const NONE_MS = 3_000;
/** Debt forgiven per second: the share of the event loop that one partner may take permanently. */
const FORGIVEN_MS_PER_SECOND = 50;

/** A receiver that closes each connection or sends many records may be honest: its costs count for a fifth, so they may take 25 % of the loop. */
const WEIGHT = { failed: 1, succeeded: 0.2, response: 0.2 } as const;

/**
 * Limits what receivers cost on purpose, by TLS handshakes and responses. Rejecting a chain of 12 KB of certificates with large
 * RSA exponents takes 50 ms, and an endpoint's circuit breaker stays closed if every tenth attempt succeeds.
 * @param now monotonic, milliseconds
 */
export const createReceiverDebts = (now: () => number = () => performance.now()): ReceiverDebts => {
  const debts = createDebts(FORGIVEN_MS_PER_SECOND, now);
  return {
    charge: (partnerId, ms, kind) => debts.charge(partnerId, ms * WEIGHT[kind]),
    roomOf: (partnerId) => {
      const owed = debts.owed(partnerId);
      if (owed <= ONE_AT_A_TIME_MS) return Number.POSITIVE_INFINITY;
      return owed <= NONE_MS ? 1 : 0;
    },
  };
};
