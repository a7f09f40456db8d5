import { z } from 'zod';
import type { EventOf } from '../kernel/events.ts';

const instant = z.iso.datetime();
const ids = { tracker_id: z.uuid(), partner_id: z.uuid() };

const snapshot = z.object({
  trackers: z.array(
    z.object({
      tracker_id: z.uuid(),
      name: z.string(),
      origins: z.array(z.string()),
      customer_reference: z.string().nullable(),
      created_at: instant,
      disabled_at: instant.nullable(),
    }),
  ),
  /** Id, and when it was deleted. */
  deleted: z.array(z.tuple([z.uuid(), instant])),
});

/** Stream `trackers-<partner>`: the lives of all trackers of a partner. */
export const trackerEvents = {
  'trackers.TrackerCreated.v1': z.object({
    ...ids,
    name: z.string(),
    origins: z.array(z.string()),
    customer_reference: z.string().nullable(),
    created_at: instant,
  }),
  'trackers.TrackerDisabled.v1': z.object({ ...ids, disabled_at: instant }),
  'trackers.TrackerEnabled.v1': z.object({ ...ids, enabled_at: instant }),
  'trackers.TrackerDeleted.v1': z.object({ ...ids, deleted_at: instant }),
  /** The fold so far: commands start from the newest one. Events before it stay, for rebuilds. */
  'trackers.TrackersSnapshotted.v1': snapshot,
  /**
   * A fold that does not fit into one append, in parts that follow each other; `deleted` is all in the last one. Commands
   * start from the first part where all are there. To a fold that has come so far, a part says nothing new.
   */
  'trackers.TrackersSnapshotPart.v1': snapshot.extend({ part: z.int().min(1), parts: z.int().min(2) }),
} as const;
export type TrackerEvent = EventOf<typeof trackerEvents>;

export const TRACKERS_PREFIX = 'trackers-';
