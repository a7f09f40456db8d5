import { z } from 'zod';
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
