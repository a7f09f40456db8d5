/** The distinct addresses being looked up in this process (decisions, Lookup: `lookup_capacity`). */
export interface InFlight {
  /** Returns null where the ceiling is reached; otherwise what to call when the lookup has ended. */
  enter(ip: string): (() => void) | null;
}

/** Creates the count of addresses that are looked up. */
export function createInFlight(ceiling: number): InFlight {
  const running = new Map<string, number>();
  return {
    enter: (ip) => {
      const count = running.get(ip) ?? 0;
      if (count === 0 && running.size >= ceiling) return null;
      running.set(ip, count + 1);
      return () => {
        const left = (running.get(ip) ?? 1) - 1;
        if (left === 0) running.delete(ip);
        else running.set(ip, left);
      };
    },
  };
}
