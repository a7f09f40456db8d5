import type pg from 'pg';
import { unreachable } from '../../domain/kernel/decider.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import { revealEvents } from '../../domain/reveals/events.ts';
import { sessionEvents } from '../../domain/sessions/events.ts';
import {
  negatedCalls,
  plusCalls,
  type TrackerCalls,
  type TrackerHour,
  type TrackerHourEvent,
  trackerHourEvents,
  usageEvents,
} from '../../domain/usage/events.ts';
import type { RecordedEvent } from '../../event-store/port.ts';
import type { Projection } from '../projection.ts';
import { deleteEmpty, put, type Row, type Rows, sums, writeRows } from './counted-rows.ts';

const schemas = { ...usageEvents, ...sessionEvents, ...revealEvents };

/** Projects hourly usage by tracker: the read model of GET /v1/trackers/{tracker_id}/usage. */
export const trackerUsage: Projection = {
  name: 'tracker-usage',
  tables: ['tracker_calls_hour', 'tracker_hour', 'corrected_tracker_hour'],
  types: Object.keys({ ...schemas, ...trackerHourEvents }),
  carryOver: `insert into corrected_tracker_hour select * from read.corrected_tracker_hour on conflict do nothing`,
  async apply(events, db) {
    let counted: RecordedEvent[] = [];
    for (const stored of events) {
      const marked = readEvent(trackerHourEvents, stored);
      if (marked === null) counted.push(stored);
      else {
        // A mark stands between the counts before and after it.
        await applyCounts(counted, db);
        counted = [];
        await applyMark(marked, stored.position, db);
      }
    }
    await applyCounts(counted, db);
  },
};

async function applyCounts(events: readonly RecordedEvent[], db: pg.ClientBase): Promise<void> {
  const calls: Rows<TrackerCalls> = new Map();
  const begun: Rows<TrackerHour> = new Map();
  const corrected: Row<TrackerCalls>[] = [];
  for (const stored of events) fold(calls, begun, corrected, stored);
  await writeRows(db, 'tracker_calls', callsUpsert, calls);
  await writeRows(db, 'tracker_hours', hoursUpsert, begun);
  await deleteEmpty(db, 'delete_empty_calls', DELETE_EMPTY, KEY_COLUMNS, corrected);
}

const startOf = (hour: string): string => `${hour}:00:00Z`;

async function applyMark(
  { type, data }: TrackerHourEvent,
  position: bigint,
  db: pg.ClientBase,
): Promise<void> {
  switch (type) {
    case 'usage.TrackerHoursMarked.v1': {
      const { mark_id, hours } = data;
      const values = [mark_id, hours.map(([tracker]) => tracker), hours.map(([, hour]) => startOf(hour))];
      await db.query({ name: 'mark_tracker_hours', text: MARK, values });
      return;
    }
    case 'usage.TrackerHoursKept.v1': {
      const { mark_id, counts } = data;
      const columns = [0, 1, 2, 3].map((index) =>
        counts.map((count) => (index === 1 ? startOf(count[1]) : count[index])),
      );
      await db.query({
        name: 'keep_tracker_hours',
        text: KEEP,
        values: [mark_id, ...columns, String(position)],
      });
      return;
    }
    default:
      unreachable(type);
  }
}

/** Marks each hour, because a rebuild has no row of an hour whose events are all gone. */
const MARK = `
  insert into tracker_hour as present (tracker_id, hour, sessions, reveals, mark_id, marked_sessions, marked_reveals)
  select distinct tracker_id, hour, 0, 0, $1::uuid, 0, 0 from unnest($2::uuid[], $3::timestamptz[]) as n (tracker_id, hour)
  on conflict (tracker_id, hour) do update set (mark_id, marked_sessions, marked_reveals) =
    row (excluded.mark_id, present.sessions, present.reveals)`;

/** Does nothing where the day was closed after the mark: its totals are right. */
const KEEP = `
  update tracker_hour t
  set (changed_position, sessions, reveals, mark_id, marked_sessions, marked_reveals) =
      row (greatest(t.changed_position, $6::bigint), n.sessions + t.sessions - t.marked_sessions, n.reveals + t.reveals - t.marked_reveals,
           null::uuid, null::bigint, null::bigint)
  from unnest($2::uuid[], $3::timestamptz[], $4::bigint[], $5::bigint[]) as n (tracker_id, hour, sessions, reveals)
  where t.tracker_id = n.tracker_id and t.hour = n.hour and t.mark_id = $1`;

function fold(
  calls: Rows<TrackerCalls>,
  begun: Rows<TrackerHour>,
  corrected: Row<TrackerCalls>[],
  stored: RecordedEvent,
): void {
  const event = readEvent(schemas, stored);
  const from = { source: stored.stream, position: stored.position };
  const ofAll = { source: '', position: stored.position };
  switch (event?.type) {
    case 'usage.TrackerCallsCounted.v1':
      for (const count of event.data.counts) put(calls, from, count, plusCalls);
      return;
    case 'usage.TrackerCallsCorrected.v1':
      for (const count of event.data.counts) {
        put(calls, from, negatedCalls(count), plusCalls);
        corrected.push({ ...from, count, absolute: false });
      }
      return;
    case 'usage.TrackerCallsTotalled.v1':
      for (const count of event.data.counts) put(calls, from, count, null);
      return;
    case 'usage.TrackerDayClosed.v1':
      for (const count of event.data.counts) put(begun, ofAll, count, null);
      return;
    case 'sessions.SessionCreated.v1': {
      const { tracker_id, first_seen_at } = event.data;
      put(begun, ofAll, [tracker_id, first_seen_at.slice(0, 13), 1, 0], plusHour);
      return;
    }
    case 'reveals.RevealRequested.v1': {
      const { tracker_id, created_at } = event.data;
      put(begun, ofAll, [tracker_id, created_at.slice(0, 13), 0, 1], plusHour);
      return;
    }
  }
}

const plusHour = (sum: TrackerHour | undefined, row: TrackerHour): TrackerHour =>
  sum ? [sum[0], sum[1], sum[2] + row[2], sum[3] + row[3]] : row;

const KEY_COLUMNS = 3;

const CALLS = ['capture_requests', 'api_requests', 'completed_responses', 'company_responses'];
const callsUpsert = (absolute: boolean): string => `
  insert into tracker_calls_hour as present (source, tracker_id, hour, ${CALLS.join(', ')}, changed_position)
  select * from unnest($1::text[], $2::uuid[], $3::timestamptz[], $4::bigint[], $5::bigint[], $6::bigint[],
                       $7::bigint[], $8::bigint[])
  on conflict (tracker_id, hour, source) do update set ${sums(CALLS, absolute)}`;

/** Deletes hours that corrections have reduced to zero, as if they had never been counted. */
const DELETE_EMPTY = `
  with c as (
    select * from unnest($1::text[], $2::uuid[], $3::timestamptz[], $4::bigint[])
      as c (source, tracker_id, hour, changed_position)),
  emptied as (
    delete from tracker_calls_hour t using c
    where t.source = c.source and t.tracker_id = c.tracker_id and t.hour = c.hour
      and t.capture_requests = 0 and t.api_requests = 0)
  insert into corrected_tracker_hour as present (tracker_id, hour, changed_position)
  select tracker_id, hour, max(changed_position) from c group by tracker_id, hour
  on conflict (tracker_id, hour) do update
  set changed_position = greatest(present.changed_position, excluded.changed_position)`;

const HOURS = ['sessions', 'reveals'];
const NO_MARK = ', mark_id = null, marked_sessions = null, marked_reveals = null';
const hoursUpsert = (absolute: boolean): string => `
  insert into tracker_hour as present (tracker_id, hour, ${HOURS.join(', ')}, changed_position)
  select tracker_id, hour, sessions, reveals, changed_position
  from unnest($1::text[], $2::uuid[], $3::timestamptz[], $4::bigint[], $5::bigint[], $6::bigint[])
       as n (source, tracker_id, hour, sessions, reveals, changed_position)
  on conflict (tracker_id, hour) do update set ${sums(HOURS, absolute)}${absolute ? NO_MARK : ''}`;
