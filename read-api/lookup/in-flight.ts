/** The distinct addresses being looked up in this process. */
export interface InFlight {
  /** null where the ceiling is reached; else what to call when the lookup has ended. */
  enter(ip: string): (() => void) | null;
}

export const createInFlight = (ceiling: number): InFlight => {
  const counts = new Map<string, number>();
  return {
    enter: (ip) => {
      const before = counts.get(ip) ?? 0;
      if (before === 0 && counts.size >= ceiling) return null;
      counts.set(ip, before + 1);
      return () => {
        const left = (counts.get(ip) ?? 1) - 1;
        if (left === 0) counts.delete(ip);
        else counts.set(ip, left);
      };
    },
  };
};
