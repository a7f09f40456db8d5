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

/** A partner's trackers, and recently deleted ones. */
export interface Trackers {
  readonly byId: PersistentMap<string, Tracker>;
  /** Times of deletion (ISO 8601) by id: the latest, and those before them. */
  readonly deleted: PersistentMap<string, string>;
  readonly deletedBefore: PersistentMap<string, string>;
}

/**
 * Minimum number of remembered deletions; the maximum is twice that. Bounded, because a script that creates and deletes
 * trackers would otherwise make the snapshot too large for an append.
 */
const DELETED_REMEMBERED = 2_500;

/** Returns when a recently deleted tracker was deleted; undefined if it was not, or is no longer remembered. */
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
      /** Trackers per partner, without deleted ones. */
      readonly limit: number;
    })
  | (TrackerRef & { readonly type: 'Disable' | 'Enable' | 'Delete' });

export type TrackerRefusal =
  | 'invalid_tracker'
  | 'invalid_origin'
  | 'tracker_limit'
  | 'tracker_not_found'
  | 'tracker_deleted';

const MAX_NAME_LENGTH = 200;
const MAX_ORIGINS = 50;

const areOrigins = (texts: readonly string[]): boolean =>
  texts.length >= 1 &&
  texts.length <= MAX_ORIGINS &&
  new Set(texts).size === texts.length &&
  texts.every(isOrigin);

const create = (command: Extract<TrackerCommand, { type: 'Create' }>, state: Trackers) => {
  const { partner_id, tracker_id, origins, customer_reference, limit, at } = command;
  const name = command.name.trim();
  if (state.byId.has(tracker_id) || deletedAt(state, tracker_id) !== undefined)
    return accept<TrackerEvent[]>([]);
  if (
    !isName(name, MAX_NAME_LENGTH) ||
    (customer_reference !== null && !isText(customer_reference, MAX_NAME_LENGTH))
  ) {
    return refuse<TrackerRefusal>('invalid_tracker');
  }
  if (!areOrigins(origins)) return refuse<TrackerRefusal>('invalid_origin');
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

export const trackersDecider: Decider<Trackers, TrackerCommand, TrackerEvent, TrackerRefusal> = {
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

/** Splits deletions as the state had them; of an earlier version's snapshot, which held all, only the latest. */
const remembered = (deleted: readonly (readonly [string, string])[]) => {
  const lately = deleted.slice(1 - 2 * DELETED_REMEMBERED);
  const inBefore = lately.length < DELETED_REMEMBERED ? 0 : DELETED_REMEMBERED;
  return {
    deleted: PersistentMap(lately.slice(inBefore)),
    deletedBefore: PersistentMap(lately.slice(0, inBefore)),
  };
};

export const trackersStream = (partnerId: string): string => `${TRACKERS_PREFIX}${partnerId}`;
