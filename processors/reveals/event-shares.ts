import { createDebts } from '../../platform/debts.ts';

/** The part of the processor's time that events may spend on one partner's completions; runs with turns make the others. */
export interface EventShares {
  /** Returns whether an event may complete reveals of the partner. */
  has(partnerId: string): boolean;
  /** Does the work and charges its time. */
  spend<T>(partnerId: string, work: () => Promise<T>): Promise<T>;
}

const MS_PER_SECOND = 500;
const MAX_OWED_MS = 500;

/** @param now monotonic, milliseconds */
export const createEventShares = (now: () => number = () => performance.now()): EventShares => {
  const debts = createDebts(MS_PER_SECOND, now);
  return {
    has: (partnerId) => debts.owed(partnerId) < MAX_OWED_MS,
    spend: async (partnerId, work) => {
      const began = now();
      try {
        return await work();
      } finally {
        debts.charge(partnerId, now() - began);
      }
    },
  };
};
