import { v7 as uuid } from 'uuid';
import { accept, type Result } from '../../domain/kernel/decider.ts';
import { type TrackerEvent, trackerEvents } from '../../domain/trackers/events.ts';
import {
  deletedAt,
  partOfTrackers,
  snapshotTrackers,
  type Tracker,
  type TrackerCommand,
  type TrackerRefusal,
  type Trackers,
  trackers,
  trackersStream,
} from '../../domain/trackers/trackers.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
import { createBatcher } from '../batcher.ts';
import type { CommandContext } from '../handle.ts';
import type { SnapshottedAggregate } from '../snapshots.ts';

const aggregate: SnapshottedAggregate<Trackers, TrackerCommand, TrackerEvent, TrackerRefusal> = {
  schemas: trackerEvents,
  decider: trackers,
  snapshot: snapshotTrackers,
  partOf: partOfTrackers,
  sizeOf: ({ byId, deleted, deletedBefore }) => byId.size + deleted.size + deletedBefore.size,
};

export interface NewTracker {
  readonly name: string;
  readonly origins: readonly string[];
  readonly customer_reference: string | null;
}

export interface ChangedTracker {
  readonly tracker_id: string;
  readonly tracker: Tracker;
  readonly position: Position | null;
}

export interface DeletedTracker {
  readonly tracker_id: string;
  /** ISO 8601. */
  readonly deleted_at: string;
  readonly position: Position | null;
}

type Outcome<T> = Promise<Result<T, TrackerRefusal>>;

/** The commands on a partner's trackers; a repeat changes nothing and tells the tracker as it is. */
export interface TrackerCommands {
  create(partnerId: string, tracker: NewTracker, context: CommandContext): Outcome<ChangedTracker>;
  changeStatus(
    type: 'Disable' | 'Enable',
    partnerId: string,
    trackerId: string,
    context: CommandContext,
  ): Outcome<ChangedTracker>;
  delete(partnerId: string, trackerId: string, context: CommandContext): Outcome<DeletedTracker>;
  /** Why nothing can be changed about a partner's tracker; null: it can. */
  absence(partnerId: string, trackerId: string): Promise<'tracker_not_found' | 'tracker_deleted' | null>;
  /** Why a partner's tracker reveals and collects nothing new; null: it does. */
  refusal(partnerId: string, trackerId: string): Promise<'tracker_disabled' | 'tracker_deleted' | null>;
}

/** `limit`: trackers that a partner may have, deleted ones apart. */
export const createTrackerCommands = (store: EventStore, limit: number): TrackerCommands => {
  const batcher = createBatcher(store, aggregate);
  const run = async (command: TrackerCommand, context: CommandContext): Outcome<ChangedTracker> => {
    const { partner_id, tracker_id } = command;
    const result = await batcher.submit(trackersStream(partner_id), command, context, ({ byId }) =>
      byId.get(tracker_id),
    );
    if (!result.ok) return result;
    const { value: tracker, position } = result.value;
    if (!tracker) throw new TypeError('a command on an unknown tracker was accepted');
    return accept({ tracker_id, tracker, position });
  };
  const remove = async (
    partner_id: string,
    tracker_id: string,
    context: CommandContext,
  ): Outcome<DeletedTracker> => {
    const command = { type: 'Delete', partner_id, tracker_id, at: context.at } as const;
    const result = await batcher.submit(trackersStream(partner_id), command, context, (state) =>
      deletedAt(state, tracker_id),
    );
    if (!result.ok) return result;
    const { value: deleted_at, position } = result.value;
    if (deleted_at === undefined) throw new TypeError('a tracker was not deleted, and not refused');
    return accept({ tracker_id, deleted_at, position });
  };
  return {
    create: (partner_id, tracker, context) =>
      run({ type: 'Create', partner_id, tracker_id: uuid(), ...tracker, limit, at: context.at }, context),
    changeStatus: (type, partner_id, tracker_id, context) =>
      run({ type, partner_id, tracker_id, at: context.at }, context),
    delete: remove,
    absence: (partner_id, tracker_id) =>
      batcher.readState(trackersStream(partner_id), (state) => {
        if (state.byId.has(tracker_id)) return null;
        return deletedAt(state, tracker_id) !== undefined ? 'tracker_deleted' : 'tracker_not_found';
      }),
    refusal: (partner_id, tracker_id) =>
      batcher.readState(trackersStream(partner_id), ({ byId }) => {
        const tracker = byId.get(tracker_id);
        if (tracker === undefined) return 'tracker_deleted';
        return tracker.disabled_at === null ? null : 'tracker_disabled';
      }),
  };
};
