import { unreachable } from '../../domain/kernel/decider.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import { type LookupCount, usageEvents } from '../../domain/usage/events.ts';
import { plus } from '../../domain/usage/totals.ts';
import type { Projection } from '../projection.ts';

interface Row {
  readonly count: LookupCount;
  readonly source: string;
  /** Totals stand for all that was counted before them; counts add. */
  readonly absolute: boolean;
}

/** Lookup answers by key, hour and outcome, summed a stream, so that a stream's totals can replace its counts. */
export const usage: Projection = {
  name: 'usage',
  tables: ['usage_hour'],
  async apply(events, db) {
    const rows = new Map<string, Row>();
    const put = (source: string, count: LookupCount, absolute: boolean): void => {
      const key = `${source} ${count[0]} ${count[1]} ${count[2]}`;
      const before = absolute ? undefined : rows.get(key);
      rows.set(key, {
        source,
        count: plus(before?.count, count),
        absolute: absolute || (before?.absolute ?? false),
      });
    };
    for (const stored of events) {
      const event = readEvent(usageEvents, stored);
      if (event === null) continue;
      const { type, data } = event;
      switch (type) {
        case 'usage.LookupsCounted.v1':
          for (const count of data.counts) put(stored.stream, count, false);
          break;
        case 'usage.LookupsTotalled.v1':
          for (const count of data.counts) put(stored.stream, count, true);
          break;
        default:
          unreachable(type);
      }
    }
    for (const absolute of [true, false]) {
      const some = [...rows.values()].filter((row) => row.absolute === absolute);
      if (some.length > 0) await db.query(upsert(absolute), columns(some));
    }
  },
};

const columns = (rows: readonly Row[]): unknown[] => [
  rows.map(({ count }) => count[0]),
  rows.map(({ count }) => `${count[1]}:00:00Z`),
  rows.map(({ count }) => count[2]),
  rows.map(({ source }) => source),
  rows.map(({ count }) => count[3]),
  rows.map(({ count }) => count[4]),
  rows.map(({ count }) => count[5]),
];

const SUMS = ['requests', 'cache_hits', 'duration_us'] as const;

const upsert = (absolute: boolean): string => `
  insert into usage_hour as present (key_id, hour, outcome, source, ${SUMS.join(', ')})
  select * from unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[],
                       $5::bigint[], $6::bigint[], $7::bigint[])
  on conflict (key_id, hour, outcome, source) do update
  set ${SUMS.map((sum) => `${sum} = excluded.${sum}${absolute ? '' : ` + present.${sum}`}`).join(', ')}`;
