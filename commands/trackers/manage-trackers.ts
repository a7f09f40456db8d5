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
  trackersDecider,
  trackersStream,
} from '../../domain/trackers/trackers.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
import { createBatcher } from '../batcher.ts';
import type { CommandContext } from '../handle.ts';
import type { SnapshottedAggregate } from '../snapshots.ts';

const aggregate: SnapshottedAggregate<Trackers, TrackerCommand, TrackerEvent, TrackerRefusal> = {
  schemas: trackerEvents,
  decider: trackersDecider,
  snapshot: snapshotTrackers,
  partOf: partOfTrackers,
  sizeOf: ({ byId, deleted }) => byId.size + deleted.size,
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

/**
 * Creates the commands on a partner's trackers, all idempotent; each returns the tracker as it is. `limit`: trackers per partner,
 * without deleted ones.
 */
export function createTrackerCommands(store: EventStore, limit: number) {
  const batcher = createBatcher(store, aggregate);
  const run = async (command: TrackerCommand, context: CommandContext): Outcome<ChangedTracker> => {
    const { partner_id, tracker_id } = command;
    const result = await batcher.submitCommand(trackersStream(partner_id), command, context, ({ byId }) =>
      byId.get(tracker_id),
    );
    if (!result.ok) return result;
    const { value: tracker, position } = result.value;
    if (!tracker) throw new TypeError('a command on an unknown tracker was accepted');
    return accept({ tracker_id, tracker, position });
  };
  return {
    create: (partner_id: string, tracker: NewTracker, context: CommandContext) =>
      run({ type: 'Create', partner_id, tracker_id: uuid(), ...tracker, limit, at: context.at }, context),
    update: (partner_id: string, tracker_id: string, changes: Partial<NewTracker>, context: CommandContext) =>
      run({ type: 'Update', partner_id, tracker_id, changes, at: context.at }, context),
    changeStatus: (
      type: 'Disable' | 'Enable',
      partner_id: string,
      tracker_id: string,
      context: CommandContext,
    ) => run({ type, partner_id, tracker_id, at: context.at }, context),
    delete: async (
      partner_id: string,
      tracker_id: string,
      context: CommandContext,
    ): Outcome<DeletedTracker> => {
      const command = { type: 'Delete', partner_id, tracker_id, at: context.at } as const;
      const result = await batcher.submitCommand(trackersStream(partner_id), command, context, (state) =>
        deletedAt(state, tracker_id),
      );
      if (!result.ok) return result;
      const { value: deleted_at, position } = result.value;
      if (deleted_at === undefined)
        throw new TypeError('the deletion of a tracker was accepted but not applied');
      return accept({ tracker_id, deleted_at, position });
    },
    /** Returns why a tracker cannot be changed; null if it can. */
    absence: (partner_id: string, tracker_id: string) =>
      batcher.readState(trackersStream(partner_id), (state) => {
        if (state.byId.has(tracker_id)) return null;
        return deletedAt(state, tracker_id) !== undefined ? 'tracker_deleted' : 'tracker_not_found';
      }),
    /** Returns why a tracker accepts no new sessions and reveals; null if it does. */
    refusal: (partner_id: string, tracker_id: string) =>
      batcher.readState(trackersStream(partner_id), ({ byId }) => {
        const tracker = byId.get(tracker_id);
        if (tracker === undefined) return 'tracker_deleted';
        return tracker.disabled_at === null ? null : 'tracker_disabled';
      }),
  };
}
export type TrackerCommands = ReturnType<typeof createTrackerCommands>;
