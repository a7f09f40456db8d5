import type pg from 'pg';
import { unreachable } from '../../domain/kernel/decider.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import { dayOfUsageStream, type LookupCount, negated, plus, usageEvents } from '../../domain/usage/events.ts';
import type { RecordedEvent } from '../../event-store/port.ts';
import type { Projection } from '../projection.ts';
import { forgetBefore } from '../tables.ts';
import { deleteEmpty, put, type Row, type Rows, sums, writeRows } from './counted-rows.ts';

/** Whether totals have replaced a stream's counts, and since when (ISO 8601). */
interface Source {
  readonly totalled: boolean;
  readonly closed_at: string | null;
}

/** Projects lookup responses by key, hour and outcome, per stream, so that a stream's totals can replace its counts. */
export const usage: Projection = {
  name: 'usage',
  tables: ['usage_hour', 'usage_source', 'corrected_usage_hour'],
  types: Object.keys(usageEvents),
  carryOver: `insert into corrected_usage_hour select * from read.corrected_usage_hour on conflict do nothing`,
  async apply(events, db) {
    const { rows, sources, corrected } = changesOf(events);
    if (sources.size > 0) {
      await db.query({ name: 'upsert_sources', text: UPSERT_SOURCES, values: sourceColumns(sources) });
    }
    await writeRows(db, 'usage', upsert, rows);
    await deleteEmpty(db, 'delete_empty_usage', DELETE_EMPTY, KEY_COLUMNS, corrected);
  },
};

interface Changes {
  readonly rows: Rows<LookupCount>;
  readonly sources: ReadonlyMap<string, Source>;
  /** Rows whose counts were reduced. */
  readonly corrected: readonly Row<LookupCount>[];
}

/** Adds up the changes of a batch, by stream, key, hour and outcome. */
function changesOf(events: readonly RecordedEvent[]): Changes {
  const rows: Rows<LookupCount> = new Map();
  const sources = new Map<string, Source>();
  const corrected: Row<LookupCount>[] = [];
  for (const stored of events) {
    const event = readEvent(usageEvents, stored);
    if (event === null) continue;
    const from = { source: stored.stream, position: stored.position };
    const totalled = (is: boolean): void => {
      sources.set(stored.stream, { totalled: is, closed_at: is ? stored.metadata.at : null });
    };
    const { type, data } = event;
    switch (type) {
      case 'usage.LookupsCounted.v1':
        totalled(false);
        for (const count of data.counts) put(rows, from, count, plus);
        break;
      case 'usage.LookupsCorrected.v1':
        totalled(false);
        for (const count of data.counts) {
          put(rows, from, negated(count), plus);
          corrected.push({ ...from, count, absolute: false });
        }
        break;
      case 'usage.LookupsTotalled.v1':
        totalled(data.part === data.parts);
        for (const count of data.counts) put(rows, from, count, null);
        break;
      case 'usage.TrackerCallsCounted.v1':
      case 'usage.TrackerCallsCorrected.v1':
        totalled(false);
        break;
      case 'usage.TrackerCallsTotalled.v1':
      case 'usage.TrackerDayClosed.v1':
        totalled(data.part === data.parts);
        break;
      default:
        unreachable(type);
    }
  }
  return { rows, sources, corrected };
}

const KEY_COLUMNS = 4;

/** Deletes hours that corrections have reduced to zero, as if they had never been counted. */
const DELETE_EMPTY = `
  with c as (
    select * from unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[], $5::bigint[])
      as c (source, key_id, hour, outcome, changed_position)),
  emptied as (
    delete from usage_hour u using c
    where u.key_id = c.key_id and u.hour = c.hour and u.outcome = c.outcome and u.source = c.source and u.requests = 0)
  insert into corrected_usage_hour as present (key_id, hour, outcome, changed_position)
  select key_id, hour, outcome, max(changed_position) from c group by key_id, hour, outcome
  on conflict (key_id, hour, outcome) do update
  set changed_position = greatest(present.changed_position, excluded.changed_position)`;

const SUMS = ['requests', 'cache_hits', 'duration_us'] as const;

const upsert = (absolute: boolean): string => `
  insert into usage_hour as present (source, key_id, hour, outcome, ${SUMS.join(', ')}, changed_position)
  select * from unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[],
                       $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
  on conflict (key_id, hour, outcome, source) do update set ${sums(SUMS, absolute)}`;

const sourceColumns = (sources: ReadonlyMap<string, Source>): unknown[] => [
  [...sources.keys()],
  [...sources.keys()].map(dayOfUsageStream),
  [...sources.values()].map(({ totalled }) => totalled),
  [...sources.values()].map(({ closed_at }) => closed_at),
];

const UPSERT_SOURCES = `
  insert into usage_source (source, day, totalled, closed_at)
  select * from unnest($1::text[], $2::date[], $3::boolean[], $4::timestamptz[])
  on conflict (source) do update set (totalled, closed_at) = row (excluded.totalled, excluded.closed_at)
    where (usage_source.totalled, usage_source.closed_at) is distinct from (excluded.totalled, excluded.closed_at)`;

/** Sources go last, because they name the streams for a repeated run. */
const AGES = [
  ['usage_hour', 'hour'],
  ['corrected_usage_hour', 'hour'],
  ['corrected_tracker_hour', 'hour'],
  ['tracker_calls_hour', 'hour'],
  ['tracker_hour', 'hour'],
  ['usage_source', 'day'],
] as const;

/** Deletes usage of streams that the event store has deleted: days before `day` (`YYYY-MM-DD`). */
export async function forgetUsageBefore(db: pg.Pool, day: string): Promise<void> {
  for (const age of AGES) await forgetBefore(db, age, day);
}
