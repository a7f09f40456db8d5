import type pg from 'pg';
import { unreachable } from '../../domain/kernel/decider.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import { type TrackerEvent, trackerEvents } from '../../domain/trackers/events.ts';
import type { Projection } from '../projection.ts';

/** Projects the current state of trackers. Row by row, because these events are rare. */
export const trackers: Projection = {
  name: 'trackers',
  tables: ['tracker'],
  types: Object.keys(trackerEvents),
  async apply(events, db) {
    for (const stored of events) {
      const event = readEvent(trackerEvents, stored);
      if (!event) continue;
      await applyOne(event, db);
      if (!('tracker_id' in event.data)) continue;
      await db.query('update tracker set changed_position = $2 where tracker_id = $1', [
        event.data.tracker_id,
        String(stored.position),
      ]);
    }
  },
};

async function applyOne({ type, data }: TrackerEvent, db: pg.ClientBase): Promise<void> {
  const set = (column: 'disabled_at' | 'deleted_at', at: string | null, of: { tracker_id: string }) =>
    db.query(`update tracker set ${column} = $2 where tracker_id = $1`, [of.tracker_id, at]);
  switch (type) {
    case 'trackers.TrackerCreated.v1':
      await db.query(
        `insert into tracker (tracker_id, partner_id, name, origins, customer_reference, created_at)
         values ($1, $2, $3, $4, $5, $6) on conflict do nothing`,
        [data.tracker_id, data.partner_id, data.name, data.origins, data.customer_reference, data.created_at],
      );
      return;
    case 'trackers.TrackerUpdated.v1':
      await db.query(
        'update tracker set name = $2, origins = $3, customer_reference = $4 where tracker_id = $1',
        [data.tracker_id, data.name, data.origins, data.customer_reference],
      );
      return;
    case 'trackers.TrackerDisabled.v1':
      await set('disabled_at', data.disabled_at, data);
      return;
    case 'trackers.TrackerEnabled.v1':
      await set('disabled_at', null, data);
      return;
    case 'trackers.TrackerDeleted.v1':
      await set('deleted_at', data.deleted_at, data);
      return;
    case 'trackers.TrackersSnapshotted.v1':
    case 'trackers.TrackersSnapshotPart.v1':
      return;
    default:
      unreachable(type);
  }
}
