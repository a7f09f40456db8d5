import type pg from 'pg';
import { readEvent } from '../../domain/kernel/events.ts';
import { generationOfSignals, signalEvents } from '../../domain/signals/events.ts';
import type { RecordedEvent } from '../../event-store/port.ts';
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
  readonly generation: number;
  readonly last_revision: number;
  readonly last_position: string;
}

/** A clue that was erased. */
interface Erased {
  readonly event_id: string;
  readonly batch: string;
}

/** Projects the clues of the last 30 days, deduplicated by id, and the days that have any. */
export const signals: Projection = {
  name: 'signals',
  tables: ['signal', 'signal_day'],
  types: Object.keys(signalEvents),
  async apply(events, db) {
    const rows = new Map<string, Row>();
    const days = new Map<string, Day>();
    const erased: Erased[] = [];
    for (const recorded of events) {
      const event = readEvent(signalEvents, recorded);
      if (event === null) continue;
      const { day, clues, left_out } = event.data;
      const isKept = event.type === 'signals.SignalsKept.v1';
      const batch = isKept ? event.data.batch : recorded.id;
      days.set(day, dayAfter(days.get(day), day, recorded));
      if (isKept) for (const event_id of left_out) erased.push({ event_id, batch });
      for (const clue of clues)
        if (!rows.has(clue.event_id)) rows.set(clue.event_id, { ...clue, batch, day });
      for (const event_id of left_out) if (!rows.has(event_id)) rows.set(event_id, { event_id, batch, day });
    }
    if (days.size === 0) return;
    await db.query({ name: 'signal_days', text: DAYS, values: [toJson(days.values())] });
    await db.query({ name: 'keep_signals', text: KEEP, values: [toJson(rows.values())] });
    if (erased.length > 0)
      await db.query({ name: 'erase_signals', text: ERASE, values: [JSON.stringify(erased)] });
  },
};

/** The revision is that of the newest generation, while the one before it may still grow. */
function dayAfter(before: Day | undefined, day: string, recorded: RecordedEvent): Day {
  const generation = generationOfSignals(recorded.stream);
  const last_position = String(recorded.position);
  return before !== undefined && before.generation > generation
    ? { ...before, last_position }
    : { day, generation, last_revision: recorded.revision, last_position };
}

const DAYS = `
  insert into signal_day as d (day, generation, last_revision, last_position)
  select day, generation, last_revision, last_position from json_populate_recordset(null::signal_day, $1) order by day
  on conflict (day) do update set (generation, last_revision, last_position) = row (
    greatest(d.generation, excluded.generation),
    case when excluded.generation > d.generation then excluded.last_revision
         when excluded.generation < d.generation then d.last_revision
         else greatest(d.last_revision, excluded.last_revision) end,
    greatest(d.last_position, excluded.last_position))`;

/** What a sender names an erased clue stays, so that a repeat of it is recognized. */
const ERASE = `
  update signal s set (visitor, domain, site, page_run, submitted, occurred_at, sealed) =
    row (null::text, null::text, null::text, null::text, null::boolean, null::timestamptz, null::bytea)
  from json_to_recordset($1) as e (event_id text, batch uuid)
  where s.event_id = e.event_id and s.batch = e.batch and s.visitor is not null`;

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
