/** What failed TLS handshakes of a partner's receivers have cost the event loop of this process. */
export interface HandshakeDebts {
  /** Adds the time of one failed handshake, in milliseconds. */
  charge(partnerId: string, ms: number): void;
  /** How many attempts of the partner may be under way; infinity: no fewer than otherwise. */
  roomOf(partnerId: string): number;
}

/** Above this, one attempt at a time; above the second, none. Some 300, and some 2,000 usual handshakes that fail. */
const ONE_AT_A_TIME_MS = 500;
const NONE_MS = 3_000;
/** So much of a debt is forgiven each second, which is the part of the event loop that a partner may take for good. */
const FORGIVEN_A_SECOND_MS = 50;

/**
 * Limits what receivers cost that fail handshakes on purpose. A chain of 12 KB of certificates with large RSA exponents
 * takes 50 ms to refuse; the breaker of an endpoint does not see it where every tenth attempt succeeds.
 * @param now monotonic, milliseconds
 */
export const createHandshakeDebts = (now: () => number = () => performance.now()): HandshakeDebts => {
  const debts = new Map<string, { readonly ms: number; readonly at: number }>();
  const debtOf = (partnerId: string): number => {
    const debt = debts.get(partnerId);
    if (debt === undefined) return 0;
    const left = debt.ms - ((now() - debt.at) / 1_000) * FORGIVEN_A_SECOND_MS;
    if (left > 0) return left;
    debts.delete(partnerId);
    return 0;
  };
  return {
    charge: (partnerId, ms) => {
      const owed = debtOf(partnerId) + ms;
      debts.set(partnerId, { ms: owed, at: now() });
    },
    roomOf: (partnerId) => {
      const owed = debtOf(partnerId);
      if (owed <= ONE_AT_A_TIME_MS) return Number.POSITIVE_INFINITY;
      return owed <= NONE_MS ? 1 : 0;
    },
  };
};
