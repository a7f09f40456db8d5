/** A database at the schema of an earlier release, as large as after years. */
import pg from 'pg';
import type { Surroundings } from '../../test/support/everything.ts';
import { loadDatabase, readRecorded } from '../../test/upgrade/recorded.ts';

const RELEASE = '0.2.0';
const UNUSED_URLS = { webhookUrls: { receiver: 'http://127.0.0.1:1/', closed: 'http://127.0.0.1:2/' } };

/** Repeats the recorded log up to this number of events, each stream under new names. */
const LOG = `
  with size as (select count(*) as n from eventlog.event),
  streams as (
    insert into eventlog.stream (name, revision, truncated_before, expired)
    select s.name || '-' || copy, s.revision, s.truncated_before, s.expired
    from size, generate_series(1, $1 / size.n) copy, eventlog.stream s)
  insert into eventlog.event (stream, revision, id, type, data, metadata)
  select e.stream || '-' || copy, e.revision, gen_random_uuid(), e.type, e.data, e.metadata
  from size, generate_series(1, $1 / size.n) copy, eventlog.event e order by copy, e.position`;

/** Repeats the first row of a table this many times, each time with new keys. */
const copies = (table: string, keys: Readonly<Record<string, string>>): string => `
  insert into ${table} select p.*
  from (select to_jsonb(t) as first from ${table} t limit 1) r, generate_series(1, $1::int) n,
    jsonb_populate_record(null::${table}, first || jsonb_build_object(${Object.entries(keys)
      .map(([column, value]) => `'${column}', ${value}`)
      .join(', ')})) p`;

const ANY_ID = 'md5(n::text)::uuid';
const ANY_ADDRESS = "host('20.0.0.0'::inet + n)";
/** The tables that grow with the years, and that migrations have scanned. */
const READ_MODELS = [
  copies('read.saved_lookup', { ip: ANY_ADDRESS }),
  copies('read.reservation', { reservation_id: ANY_ID, ip: ANY_ADDRESS }),
  copies('read.session', { session_id: ANY_ID }),
  copies('read.webhook_delivery', { delivery_id: ANY_ID }),
];

/** Fills an empty database with a log of `events` events and read models with a tenth as many rows each. */
export const fillOldLog = async (url: string, events: number): Promise<void> => {
  await loadDatabase(url, readRecorded(RELEASE, UNUSED_URLS as Surroundings).database);
  const db = new pg.Client({ connectionString: url });
  await db.connect();
  try {
    await db.query(LOG, [events]);
    for (const table of READ_MODELS) await db.query(table, [Math.round(events / 10)]);
    await db.query('vacuum analyze');
    await db.query('checkpoint');
  } finally {
    await db.end();
  }
};
