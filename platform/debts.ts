/** Amounts that were taken from something shared, by name; each is forgiven steadily. */
export interface Debts {
  charge(name: string, amount: number): void;
  /** Returns what is left of the charges. */
  owed(name: string): number;
}

/** @param now monotonic, milliseconds */
export const createDebts = (
  forgivenPerSecond: number,
  now: () => number = () => performance.now(),
): Debts => {
  const debts = new Map<string, { readonly amount: number; readonly at: number }>();
  const owed = (name: string): number => {
    const debt = debts.get(name);
    if (debt === undefined) return 0;
    const left = debt.amount - ((now() - debt.at) / 1_000) * forgivenPerSecond;
    if (left > 0) return left;
    debts.delete(name);
    return 0;
  };
  return {
    charge: (name, amount) => void debts.set(name, { amount: owed(name) + amount, at: now() }),
    owed,
  };
};
