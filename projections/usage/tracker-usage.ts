import type pg from 'pg';
import { readEvent } from '../../domain/kernel/events.ts';
import { revealEvents } from '../../domain/reveals/events.ts';
import { sessionEvents } from '../../domain/sessions/events.ts';
import {
  negatedCalls,
  plusCalls,
  type TrackerCalls,
  type TrackerHour,
  usageEvents,
} from '../../domain/usage/events.ts';
import type { RecordedEvent } from '../../event-store/port.ts';
import type { Projection } from '../projection.ts';

/** Totals replace all earlier counts; counts are added. */
interface Row<Count> {
  readonly count: Count;
  readonly source: string;
  readonly absolute: boolean;
}

type Rows<Count> = Map<string, Row<Count>>;

const schemas = { ...usageEvents, ...sessionEvents, ...revealEvents };

/** Projects hourly usage by tracker: the read model of GET /v1/trackers/{tracker_id}/usage. */
export const trackerUsage: Projection = {
  name: 'tracker-usage',
  tables: ['tracker_calls_hour', 'tracker_hour'],
  types: Object.keys(schemas),
  async apply(events, db) {
    const calls: Rows<TrackerCalls> = new Map();
    const begun: Rows<TrackerHour> = new Map();
    const corrected: Row<TrackerCalls>[] = [];
    for (const stored of events) fold(calls, begun, corrected, stored);
    for (const absolute of [true, false]) {
      await write(db, `tracker_calls ${absolute}`, callsUpsert(absolute), calls, absolute);
      await write(db, `tracker_hours ${absolute}`, hoursUpsert(absolute), begun, absolute);
    }
    if (corrected.length > 0) {
      const values = columnsOf(corrected).slice(0, KEY_COLUMNS);
      await db.query({ name: 'delete_empty_calls', text: DELETE_EMPTY, values });
    }
  },
};

const fold = (
  calls: Rows<TrackerCalls>,
  begun: Rows<TrackerHour>,
  corrected: Row<TrackerCalls>[],
  stored: RecordedEvent,
): void => {
  const event = readEvent(schemas, stored);
  switch (event?.type) {
    case 'usage.TrackerCallsCounted.v1':
      for (const count of event.data.counts) put(calls, stored.stream, count, plusCalls);
      return;
    case 'usage.TrackerCallsCorrected.v1':
      for (const count of event.data.counts) {
        put(calls, stored.stream, negatedCalls(count), plusCalls);
        corrected.push({ source: stored.stream, count, absolute: false });
      }
      return;
    case 'usage.TrackerCallsTotalled.v1':
      for (const count of event.data.counts) put(calls, stored.stream, count, null);
      return;
    case 'usage.TrackerDayClosed.v1':
      for (const count of event.data.counts) put(begun, '', count, null);
      return;
    case 'sessions.SessionCreated.v1': {
      const { tracker_id, first_seen_at } = event.data;
      put(begun, '', [tracker_id, first_seen_at.slice(0, 13), 1, 0], plusHour);
      return;
    }
    case 'reveals.RevealRequested.v1': {
      const { tracker_id, created_at } = event.data;
      put(begun, '', [tracker_id, created_at.slice(0, 13), 0, 1], plusHour);
      return;
    }
  }
};

const plusHour = (sum: TrackerHour | undefined, row: TrackerHour): TrackerHour =>
  sum ? [sum[0], sum[1], sum[2] + row[2], sum[3] + row[3]] : row;

/** Merges a count into the batch. `plus` null: the count replaces all earlier ones. */
const put = <Count extends readonly [string, string, ...unknown[]]>(
  rows: Rows<Count>,
  source: string,
  count: Count,
  plus: ((sum: Count | undefined, row: Count) => Count) | null,
): void => {
  const key = `${source} ${count[0]} ${count[1]}`;
  const before = rows.get(key);
  rows.set(
    key,
    plus
      ? { source, count: plus(before?.count, count), absolute: before?.absolute ?? false }
      : { source, count, absolute: true },
  );
};

const write = async <Count extends readonly [string, string, ...unknown[]]>(
  db: pg.ClientBase,
  name: string,
  text: string,
  rows: Rows<Count>,
  absolute: boolean,
): Promise<void> => {
  const some = [...rows.values()].filter((row) => row.absolute === absolute);
  if (some.length === 0) return;
  await db.query({ name, text, values: columnsOf(some) });
};

const columnsOf = <Count extends readonly [string, string, ...unknown[]]>(
  rows: readonly Row<Count>[],
): unknown[] => [
  rows.map(({ source }) => source),
  ...(rows[0]?.count ?? []).map((_, index) =>
    rows.map(({ count }) => (index === 1 ? `${count[1]}:00:00Z` : count[index])),
  ),
];

const KEY_COLUMNS = 3;

const sums = (columns: readonly string[], absolute: boolean): string =>
  columns
    .map((column) => `${column} = excluded.${column}${absolute ? '' : ` + present.${column}`}`)
    .join(', ');

const CALLS = ['capture_requests', 'api_requests', 'completed_responses', 'company_responses'];
const callsUpsert = (absolute: boolean): string => `
  insert into tracker_calls_hour as present (source, tracker_id, hour, ${CALLS.join(', ')})
  select * from unnest($1::text[], $2::uuid[], $3::timestamptz[], $4::bigint[], $5::bigint[], $6::bigint[],
                       $7::bigint[])
  on conflict (tracker_id, hour, source) do update set ${sums(CALLS, absolute)}`;

/** Deletes hours that corrections have reduced to zero, as if they had never been counted. */
const DELETE_EMPTY = `
  delete from tracker_calls_hour t
  using unnest($1::text[], $2::uuid[], $3::timestamptz[]) as c (source, tracker_id, hour)
  where t.source = c.source and t.tracker_id = c.tracker_id and t.hour = c.hour
    and t.capture_requests = 0 and t.api_requests = 0`;

const HOURS = ['sessions', 'reveals'];
const hoursUpsert = (absolute: boolean): string => `
  insert into tracker_hour as present (tracker_id, hour, ${HOURS.join(', ')})
  select tracker_id, hour, sessions, reveals
  from unnest($1::text[], $2::uuid[], $3::timestamptz[], $4::bigint[], $5::bigint[])
       as n (source, tracker_id, hour, sessions, reveals)
  on conflict (tracker_id, hour) do update set ${sums(HOURS, absolute)}`;
