import { Map as PersistentMap } from 'immutable';
import { accept, type Decider, refuse, unreachable } from '../kernel/decider.ts';
import { isName, isText } from '../kernel/text.ts';
import { isoTime } from '../kernel/time.ts';
import { TRACKERS_PREFIX, type TrackerEvent } from './events.ts';
import { isOrigin } from './origin.ts';

export interface Tracker {
  readonly tracker_id: string;
  readonly name: string;
  readonly origins: readonly string[];
  readonly customer_reference: string | null;
  readonly created_at: string;
  readonly disabled_at: string | null;
}

/** A partner's trackers, and those that were deleted last. */
export interface Trackers {
  readonly byId: PersistentMap<string, Tracker>;
  /** When trackers were deleted (ISO 8601), by their ids: the last ones, and those before them. */
  readonly deleted: PersistentMap<string, string>;
  readonly deletedBefore: PersistentMap<string, string>;
}

/**
 * So many deleted trackers are remembered at least, and at most twice as many: a snapshot of all that a script makes and
 * deletes would not fit into an append.
 */
const DELETED_REMEMBERED = 2_500;

/** When one of the trackers deleted last was deleted; undefined: it was not, or others were deleted after it. */
export const deletedAt = ({ deleted, deletedBefore }: Trackers, trackerId: string): string | undefined =>
  deleted.get(trackerId) ?? deletedBefore.get(trackerId);

interface TrackerRef {
  readonly partner_id: string;
  readonly tracker_id: string;
  readonly at: number;
}

export type TrackerCommand =
  | (TrackerRef & {
      readonly type: 'Create';
      readonly name: string;
      readonly origins: readonly string[];
      readonly customer_reference: string | null;
      /** Trackers that a partner may have, deleted ones apart. */
      readonly limit: number;
    })
  | (TrackerRef & { readonly type: 'Disable' | 'Enable' | 'Delete' });

export type TrackerRefusal =
  | 'invalid_tracker'
  | 'invalid_origin'
  | 'tracker_limit'
  | 'tracker_not_found'
  | 'tracker_deleted';

const LONGEST = 200;
const MOST_ORIGINS = 50;

const create = (command: Extract<TrackerCommand, { type: 'Create' }>, state: Trackers) => {
  const { partner_id, tracker_id, origins, customer_reference, limit, at } = command;
  const name = command.name.trim();
  if (state.byId.has(tracker_id) || deletedAt(state, tracker_id) !== undefined)
    return accept<TrackerEvent[]>([]);
  if (!isName(name, LONGEST) || (customer_reference !== null && !isText(customer_reference, LONGEST))) {
    return refuse<TrackerRefusal>('invalid_tracker');
  }
  const different = new Set(origins).size === origins.length;
  const some = origins.length >= 1 && origins.length <= MOST_ORIGINS;
  if (!some || !different || !origins.every(isOrigin)) return refuse<TrackerRefusal>('invalid_origin');
  if (state.byId.size >= limit) return refuse<TrackerRefusal>('tracker_limit');
  return accept<TrackerEvent[]>([
    {
      type: 'trackers.TrackerCreated.v1',
      data: {
        tracker_id,
        partner_id,
        name,
        origins: [...origins],
        customer_reference,
        created_at: isoTime(at),
      },
    },
  ]);
};

export const trackers: Decider<Trackers, TrackerCommand, TrackerEvent, TrackerRefusal> = {
  initial: { byId: PersistentMap(), deleted: PersistentMap(), deletedBefore: PersistentMap() },

  decide(command, state) {
    const { partner_id, tracker_id, at } = command;
    if (command.type === 'Create') return create(command, state);
    if (deletedAt(state, tracker_id) !== undefined) {
      return command.type === 'Delete' ? accept([]) : refuse('tracker_deleted');
    }
    const tracker = state.byId.get(tracker_id);
    if (!tracker) return refuse('tracker_not_found');
    const ids = { tracker_id, partner_id };
    switch (command.type) {
      case 'Disable':
        return tracker.disabled_at !== null
          ? accept([])
          : accept([{ type: 'trackers.TrackerDisabled.v1', data: { ...ids, disabled_at: isoTime(at) } }]);
      case 'Enable':
        return tracker.disabled_at === null
          ? accept([])
          : accept([{ type: 'trackers.TrackerEnabled.v1', data: { ...ids, enabled_at: isoTime(at) } }]);
      case 'Delete':
        return accept([{ type: 'trackers.TrackerDeleted.v1', data: { ...ids, deleted_at: isoTime(at) } }]);
      default:
        return unreachable(command);
    }
  },

  evolve(state, { type, data }) {
    switch (type) {
      case 'trackers.TrackerCreated.v1': {
        const { partner_id: _, ...tracker } = data;
        return put(state, { ...tracker, disabled_at: null });
      }
      case 'trackers.TrackerDisabled.v1':
        return change(state, data.tracker_id, { disabled_at: data.disabled_at });
      case 'trackers.TrackerEnabled.v1':
        return change(state, data.tracker_id, { disabled_at: null });
      case 'trackers.TrackerDeleted.v1':
        return remove(state, data.tracker_id, data.deleted_at);
      case 'trackers.TrackersSnapshotted.v1':
        return {
          byId: PersistentMap(data.trackers.map((tracker) => [tracker.tracker_id, tracker])),
          ...remembered(data.deleted),
        };
      case 'trackers.TrackersSnapshotPart.v1':
        return {
          ...state,
          byId: data.trackers.reduce((byId, tracker) => byId.set(tracker.tracker_id, tracker), state.byId),
          ...(data.part === data.parts ? remembered(data.deleted) : {}),
        };
      default:
        return unreachable(type);
    }
  },
};

const put = (state: Trackers, tracker: Tracker): Trackers => ({
  ...state,
  byId: state.byId.set(tracker.tracker_id, tracker),
});

const change = (state: Trackers, id: string, over: Partial<Tracker>): Trackers => {
  const tracker = state.byId.get(id);
  return tracker ? put(state, { ...tracker, ...over }) : state;
};

const remove = (state: Trackers, id: string, at: string): Trackers => {
  const byId = state.byId.delete(id);
  const deleted = state.deleted.set(id, at);
  if (deleted.size < DELETED_REMEMBERED) return { ...state, byId, deleted };
  return { byId, deleted: PersistentMap(), deletedBefore: deleted };
};

/** `deleted`: in two parts as they were, and the newer ones of an earlier version, which remembered all. */
const remembered = (deleted: readonly (readonly [string, string])[]) => {
  const lately = deleted.slice(1 - 2 * DELETED_REMEMBERED);
  const inBefore = lately.length < DELETED_REMEMBERED ? 0 : DELETED_REMEMBERED;
  return {
    deleted: PersistentMap(lately.slice(inBefore)),
    deletedBefore: PersistentMap(lately.slice(0, inBefore)),
  };
};

/** Of JSON: each part is an append of its own, with its metadata. A thousand trackers of 50 long origins have 13 MB. */
const PART_BYTES = 786_432;

/** Writes the fold down as an event, or as several that follow each other. */
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

/** At most so many bytes of JSON: origins are ASCII. To write all of it down only to measure it would take as long again. */
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

/** Which part of a snapshot in parts an event is; null: none. */
export const partOfTrackers = ({
  type,
  data,
}: TrackerEvent): { readonly part: number; readonly parts: number } | null =>
  type === 'trackers.TrackersSnapshotPart.v1' ? data : null;

export const trackersStream = (partnerId: string): string => `${TRACKERS_PREFIX}${partnerId}`;
