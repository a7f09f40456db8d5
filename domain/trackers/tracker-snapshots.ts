import type { TrackerEvent } from './events.ts';
import type { Tracker, Trackers } from './trackers.ts';

/** JSON bytes per part: each part is an append with its metadata. A thousand trackers with 50 long origins have 13 MB. */
const PART_BYTES = 786_432;

/** Makes a snapshot of the state, as one event or several consecutive ones. */
export const snapshotTrackers = ({ byId, deleted, deletedBefore }: Trackers): readonly TrackerEvent[] => {
  const allDeleted = [...deletedBefore, ...deleted];
  const parts: StoredTracker[][] = [[]];
  let bytes = 0;
  const add = (more: number): void => {
    bytes += more;
    if (bytes <= PART_BYTES) return;
    parts.push([]);
    bytes = more;
  };
  for (const { origins, ...tracker } of byId.values()) {
    add(mostBytes(tracker, origins));
    parts.at(-1)?.push({ ...tracker, origins: [...origins] });
  }
  add(allDeleted.length * DELETED_BYTES);
  const [first = []] = parts;
  if (parts.length === 1) {
    return [{ type: 'trackers.TrackersSnapshotted.v1', data: { trackers: first, deleted: allDeleted } }];
  }
  return parts.map((trackers, index) => ({
    type: 'trackers.TrackersSnapshotPart.v1',
    data: {
      trackers,
      deleted: index + 1 === parts.length ? allDeleted : [],
      part: index + 1,
      parts: parts.length,
    },
  }));
};

const DELETED_BYTES = 80;

/** Returns an upper bound of JSON bytes (origins are ASCII), because serializing only to measure would double the work. */
const mostBytes = (
  { name, customer_reference }: Pick<Tracker, 'name' | 'customer_reference'>,
  origins: readonly string[],
): number =>
  300 +
  4 * (name.length + (customer_reference?.length ?? 0)) +
  origins.reduce((sum, origin) => sum + origin.length + 3, 0);

type StoredTracker = Extract<
  TrackerEvent,
  { type: 'trackers.TrackersSnapshotted.v1' }
>['data']['trackers'][number];

/** Returns an event's part number in a snapshot in parts; null if it is none. */
export const partOfTrackers = ({
  type,
  data,
}: TrackerEvent): { readonly part: number; readonly parts: number } | null =>
  type === 'trackers.TrackersSnapshotPart.v1' ? data : null;
