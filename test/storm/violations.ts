export interface Violation {
  readonly invariant: string;
  readonly detail: string;
}

export interface Violations {
  add(invariant: string, detail: string): void;
  readonly found: readonly Violation[];
  /** The number of all violations, also beyond the ones kept. */
  count(): number;
}

/** One broken invariant can show thousands of times. */
const MAX_KEPT_PER_INVARIANT = 20;

export const createViolations = (say: (line: string) => void): Violations => {
  const found: Violation[] = [];
  const counts = new Map<string, number>();
  return {
    found,
    add: (invariant, detail) => {
      const count = (counts.get(invariant) ?? 0) + 1;
      counts.set(invariant, count);
      if (count > MAX_KEPT_PER_INVARIANT) return;
      found.push({ invariant, detail });
      say(`VIOLATION ${invariant}: ${detail}`);
    },
    count: () => [...counts.values()].reduce((sum, count) => sum + count, 0),
  };
};
