import { z } from 'zod';
import type { EventOf } from '../kernel/events.ts';

/** Stream `epochs-log`: one event for each restore of an older backup. */
export const epochEvents = {
  'epochs.EpochBegan.v1': z.object({
    epoch_id: z.uuid(),
    /** The log's head when it began, decimal: what stands after it in the log of an earlier epoch is lost. */
    after: z.string().regex(/^\d{1,20}$/),
  }),
} as const;
export type EpochEvent = EventOf<typeof epochEvents>;

export const EPOCHS_STREAM = 'epochs-log';
