import { z } from 'zod';
import type { EventOf } from '../kernel/events.ts';
import { shownText } from '../kernel/visibility.ts';

const instant = z.iso.datetime();
const ids = { tracker_id: z.uuid(), partner_id: z.uuid() };

const snapshot = z.object({
  trackers: z.array(
    z.object({
      tracker_id: z.uuid(),
      name: shownText(),
      origins: z.array(shownText()),
      customer_reference: z.string().nullable(),
      created_at: instant,
      disabled_at: instant.nullable(),
    }),
  ),
  /** Tracker id and time of deletion. */
  deleted: z.array(z.tuple([z.uuid(), instant])),
});

/** Stream `trackers-<partner>`: all trackers of a partner. */
export const trackerEvents = {
  'trackers.TrackerCreated.v1': z.object({
    ...ids,
    name: shownText(),
    origins: z.array(shownText()),
    customer_reference: z.string().nullable(),
    created_at: instant,
  }),
  /** All that an owner may change, as it is afterwards. */
  'trackers.TrackerUpdated.v1': z.object({
    ...ids,
    name: shownText(),
    origins: z.array(shownText()),
    customer_reference: z.string().nullable(),
    updated_at: instant,
  }),
  'trackers.TrackerDisabled.v1': z.object({ ...ids, disabled_at: instant }),
  'trackers.TrackerEnabled.v1': z.object({ ...ids, enabled_at: instant }),
  'trackers.TrackerDeleted.v1': z.object({ ...ids, deleted_at: instant }),
  /** Snapshot of the state, from which commands start. Earlier events stay, for rebuilds. */
  'trackers.TrackersSnapshotted.v1': snapshot,
  /**
   * Snapshot of a state that exceeds one append, in consecutive parts; `deleted` is complete in the last one. Commands start from
   * the first part if all parts follow. Folding a part into a current state changes nothing.
   */
  'trackers.TrackersSnapshotPart.v1': snapshot.extend({ part: z.int().min(1), parts: z.int().min(2) }),
} as const;
export type TrackerEvent = EventOf<typeof trackerEvents>;

export const TRACKERS_PREFIX = 'trackers-';
