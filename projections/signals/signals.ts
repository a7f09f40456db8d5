import type pg from 'pg';
import { readEvent } from '../../domain/kernel/events.ts';
import { signalEvents } from '../../domain/signals/events.ts';
import { forgetInBatches } from '../../platform/postgres/transactions.ts';
import type { Projection } from '../projection.ts';
import { toJson } from '../tables.ts';

interface Row {
  readonly event_id: string;
  readonly batch: string;
  readonly day: string;
}

interface Day {
  readonly day: string;
  readonly last_revision: number;
  readonly last_position: string;
}

/** Projects the clues of the last 30 days, deduplicated by id, and the days that have any. */
export const signals: Projection = {
  name: 'signals',
  tables: ['signal', 'signal_day'],
  types: Object.keys(signalEvents),
  async apply(events, db) {
    const rows = new Map<string, Row>();
    const days = new Map<string, Day>();
    for (const recorded of events) {
      const event = readEvent(signalEvents, recorded);
      if (event === null) continue;
      const { day, clues, left_out } = event.data;
      const batch = recorded.id;
      days.set(day, { day, last_revision: recorded.revision, last_position: String(recorded.position) });
      for (const clue of clues)
        if (!rows.has(clue.event_id)) rows.set(clue.event_id, { ...clue, batch, day });
      for (const event_id of left_out) if (!rows.has(event_id)) rows.set(event_id, { event_id, batch, day });
    }
    if (days.size === 0) return;
    await db.query({ name: 'signal_days', text: DAYS, values: [toJson(days.values())] });
    await db.query({ name: 'keep_signals', text: KEEP, values: [toJson(rows.values())] });
  },
};

const DAYS = `
  insert into signal_day as d (day, last_revision, last_position)
  select day, last_revision, last_position from json_populate_recordset(null::signal_day, $1) order by day
  on conflict (day) do update set (last_revision, last_position) =
    (greatest(d.last_revision, excluded.last_revision), greatest(d.last_position, excluded.last_position))`;

const KEEP = `
  insert into signal (event_id, batch, day, visitor, domain, site, page_run, submitted, occurred_at, sealed)
  select event_id, batch, day, visitor, domain, site, page_run, submitted, occurred_at, decode(sealed, 'base64')
  from json_to_recordset($1) as s (event_id text, batch uuid, day date, visitor text, domain text, site text,
    page_run text, submitted boolean, occurred_at timestamptz, sealed text)
  on conflict (event_id) do nothing`;

/** Deletes the rows of a day (`YYYY-MM-DD`) whose stream the event store has deleted. */
export async function forgetSignalsOf(db: pg.Pool, day: string): Promise<void> {
  await forgetInBatches(
    db,
    `delete from read.signal where event_id = any (array(
       select event_id from read.signal where day = $1::date limit $2))`,
    day,
  );
  // The day goes last, because its row names the stream for a repeated run.
  await db.query('delete from read.signal_day where day = $1::date', [day]);
}
