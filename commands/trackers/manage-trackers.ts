import { v7 as uuid } from 'uuid';
import { accept, type Result } from '../../domain/kernel/decider.ts';
import { type TrackerEvent, trackerEvents } from '../../domain/trackers/events.ts';
import {
  type Tracker,
  type TrackerCommand,
  type TrackerRefusal,
  type Trackers,
  trackers,
  trackersStream,
} from '../../domain/trackers/trackers.ts';
import type { EventStore, Position } from '../../event-store/port.ts';
import { createBatcher, type SnapshottedAggregate } from '../batcher.ts';
import type { CommandContext } from '../handle.ts';

const aggregate: SnapshottedAggregate<Trackers, TrackerCommand, TrackerEvent, TrackerRefusal> = {
  schemas: trackerEvents,
  decider: trackers,
};

export interface NewTracker {
  readonly name: string;
  readonly origins: readonly string[];
  readonly customer_reference: string | null;
}

export interface ChangedTracker {
  readonly tracker: Tracker;
  readonly position: Position | null;
}

type Outcome = Promise<Result<ChangedTracker, TrackerRefusal>>;

/** The commands on a partner's trackers; a repeat changes nothing and tells the tracker as it is. */
export interface TrackerCommands {
  create(partnerId: string, tracker: NewTracker, context: CommandContext): Outcome;
  aim(
    type: 'Disable' | 'Enable' | 'Delete',
    partnerId: string,
    trackerId: string,
    context: CommandContext,
  ): Outcome;
  /** A partner's tracker, deleted or not. */
  find(partnerId: string, trackerId: string): Promise<Tracker | null>;
  /** Why a partner's tracker reveals and collects nothing new; null: it does. */
  refusal(partnerId: string, trackerId: string): Promise<'tracker_disabled' | 'tracker_deleted' | null>;
}

/** `limit`: trackers that a partner may have, deleted ones apart. */
export const createTrackerCommands = (store: EventStore, limit: number): TrackerCommands => {
  const batcher = createBatcher(store, aggregate);
  const run = async (command: TrackerCommand, context: CommandContext): Outcome => {
    const { partner_id, tracker_id } = command;
    const result = await batcher.submit(trackersStream(partner_id), command, context, ({ byId }) =>
      byId.get(tracker_id),
    );
    if (!result.ok) return result;
    const { value: tracker, position } = result.value;
    if (!tracker) throw new TypeError('a tracker that is not there was not refused');
    return accept({ tracker, position });
  };
  return {
    create: (partner_id, tracker, context) =>
      run({ type: 'Create', partner_id, tracker_id: uuid(), ...tracker, limit, at: context.at }, context),
    aim: (type, partner_id, tracker_id, context) =>
      run({ type, partner_id, tracker_id, at: context.at }, context),
    find: (partner_id, tracker_id) =>
      batcher.look(trackersStream(partner_id), ({ byId }) => byId.get(tracker_id) ?? null),
    refusal: (partner_id, tracker_id) =>
      batcher.look(trackersStream(partner_id), ({ byId }) => {
        const tracker = byId.get(tracker_id);
        if (tracker === undefined || tracker.deleted_at !== null) return 'tracker_deleted';
        return tracker.disabled_at === null ? null : 'tracker_disabled';
      }),
  };
};
