import type { Position } from '../event-store/port.ts';
import type { Runtime } from './runtime.ts';

/** Reads that include what was written before. `names`: projections. */
export interface ReadModels {
  /** Returns a wait for the store's current head; it resolves to false after a time limit. */
  readonly caughtUp: (names: readonly string[], limitMs?: number) => () => Promise<boolean>;
  /** As `caughtUp`, for polls, which are frequent and not urgent: they do not make projections hurry. */
  readonly polled: (names: readonly string[]) => (limitMs: number) => Promise<boolean>;
  /** Returns a brief wait for a caller's own write; after its time limit the write is answered anyway. */
  readonly ownWrite: (names: readonly string[]) => (position: Position | null) => Promise<unknown>;
}

/** Time limit of waiting for a caller's own write. */
const OWN_WRITE_MS = 1_000;
/** Time limit of a read that must include all earlier writes. */
const CAUGHT_UP_MS = 4_000;

/** Waits for the read models. A projection that an event has stopped delays only its own reads. */
export const readModels = ({ store, progress }: Pick<Runtime, 'store' | 'progress'>): ReadModels => {
  const { head } = store;
  return {
    caughtUp:
      (names, limitMs = CAUGHT_UP_MS) =>
      async () =>
        progress.reached(names, await head(), limitMs),
    polled: (names) => async (limitMs) => progress.reached(names, await head(), limitMs, 'patient'),
    ownWrite: (names) => (position) => progress.reached(names, position, OWN_WRITE_MS),
  };
};
