import { accept, type Decider, refuse } from '../kernel/decider.ts';
import type { EpochEvent } from './events.ts';

/** A stretch of the log's life between two restores. Before the first one that was begun lies one without an id. */
export interface Epoch {
  readonly epoch_id: string;
  /** The last position that it shares with the epoch before it. */
  readonly after: bigint;
}

export interface BeginEpoch {
  readonly type: 'Begin';
  readonly epoch_id: string;
  /** The log's head; null: the log is empty. */
  readonly head: bigint | null;
}

/** The epochs of a log, the oldest first. */
export const epochs: Decider<readonly Epoch[], BeginEpoch, EpochEvent, 'empty_log'> = {
  initial: [],
  decide: ({ epoch_id, head }, state) => {
    if (state.some((epoch) => epoch.epoch_id === epoch_id)) return accept([]);
    if (head === null) return refuse('empty_log');
    return accept([{ type: 'epochs.EpochBegan.v1', data: { epoch_id, after: head.toString() } }]);
  },
  evolve: (state, { data }) => [...state, { epoch_id: data.epoch_id, after: BigInt(data.after) }],
};

/**
 * The position from which a reader goes on who had come to `position` in some epoch: not past where the log of now has
 * parted from that epoch, so that the reader may get events twice and misses none.
 * @param isEpoch tells the reader's epoch; null: the one without an id
 */
export const resumeAt = (
  known: readonly Epoch[],
  position: bigint,
  isEpoch: ((epoch: Epoch) => boolean) | null,
): bigint => {
  const own = isEpoch === null ? -1 : known.findIndex(isEpoch);
  // An epoch that the log does not know of has parted from it at one of those that it knows, or before all of them.
  if (isEpoch !== null && own < 0 && known.length === 0) return 0n;
  return known.slice(own + 1).reduce((least, { after }) => (after < least ? after : least), position);
};
