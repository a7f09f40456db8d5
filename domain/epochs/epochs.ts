import { z } from 'zod';
import { accept, type Decider, refuse } from '../kernel/decider.ts';
import type { EventOf } from '../kernel/events.ts';

/** Stream `epochs-log`: one event per restore of an older backup. */
export const epochEvents = {
  'epochs.EpochBegan.v1': z.object({
    epoch_id: z.uuid(),
    /** Head of the log at the start, decimal: later events of the earlier epoch are lost. */
    after: z.string().regex(/^\d{1,20}$/),
  }),
} as const;
export type EpochEvent = EventOf<typeof epochEvents>;

export const EPOCHS_STREAM = 'epochs-log';

/** The part of the log between two restores. The part before the first recorded epoch has no id. */
export interface Epoch {
  readonly epoch_id: string;
  /** Last position shared with the previous epoch. */
  readonly after: bigint;
}

export interface BeginEpoch {
  readonly type: 'Begin';
  readonly epoch_id: string;
  /** Head of the log; null if it is empty. */
  readonly head: bigint | null;
}

/** Decides the epochs of a log, oldest first. */
export const epochsDecider: Decider<readonly Epoch[], BeginEpoch, EpochEvent, 'empty_log'> = {
  initial: [],
  decide: ({ epoch_id, head }, state) => {
    if (state.some((epoch) => epoch.epoch_id === epoch_id)) return accept([]);
    if (head === null) return refuse('empty_log');
    return accept([{ type: 'epochs.EpochBegan.v1', data: { epoch_id, after: head.toString() } }]);
  },
  evolve: (state, { data }) => [...state, { epoch_id: data.epoch_id, after: BigInt(data.after) }],
};

/**
 * Returns the position from which a reader resumes that had reached `position` in some epoch: not past the point where that
 * epoch diverged from the current log. The reader may get events twice but misses none.
 * @param isEpoch matches the reader's epoch; null: the one without an id
 */
export function resumeAt(
  known: readonly Epoch[],
  position: bigint,
  isEpoch: ((epoch: Epoch) => boolean) | null,
): bigint {
  const own = isEpoch === null ? -1 : known.findIndex(isEpoch);
  // An unknown epoch diverged at one of the known epochs, or before all of them.
  if (isEpoch !== null && own < 0 && known.length === 0) return 0n;
  return known.slice(own + 1).reduce((least, { after }) => (after < least ? after : least), position);
}
