import pg from 'pg';
import type { EventStore, Position } from '../event-store/port.ts';
import type { Projection } from './projection.ts';

export interface RebuildOptions {
  readonly store: EventStore;
  readonly url: string;
  readonly projections: readonly Projection[];
}

export interface Rebuilt {
  readonly events: number;
  readonly position: Position | null;
}

const NEXT = 'read_next';
const BATCH = 2_000;

/**
 * Builds the projections anew beside the ones in use, in one pass over the log, and puts them in their place
 * in one transaction. The ones in use serve, and go on, until then.
 */
export const rebuild = async ({ store, url, projections }: RebuildOptions): Promise<Rebuilt> => {
  const db = new pg.Client({ connectionString: url, application_name: 'doorplate rebuild' });
  db.on('error', () => undefined);
  await db.connect();
  const done = new AbortController();
  try {
    await onlyOne(db);
    await createTables(db, projections);
    await db.query(`set search_path to ${NEXT}`);
    let events = 0;
    let position: Position | null = null;
    const head = await store.head();
    if (head === null) await switchOver(db, projections, null, store);
    else {
      // What has expired too, as the ones in use have seen it (docs/adr/0008).
      const following = { after: null, batchSize: BATCH, includeExpired: true, signal: done.signal };
      for await (const batch of store.follow(following)) {
        await db.query('begin');
        for (const projection of projections) await projection.apply(batch.events, db);
        await db.query('commit');
        events += batch.events.length;
        position = batch.position;
        if (position >= head && (await switchOver(db, projections, position, store))) break;
      }
    }
    return { events, position };
  } finally {
    done.abort();
    await db.query(`rollback; drop schema if exists ${NEXT} cascade`).catch(() => undefined);
    await db.end();
  }
};

const onlyOne = async (db: pg.ClientBase): Promise<void> => {
  const { rows } = await db.query(`select pg_try_advisory_lock(72390, hashtext('rebuild')) as mine`);
  if (!rows[0]?.mine) throw new Error('another rebuild is running');
};

const tablesOf = (projections: readonly Projection[]): string[] =>
  projections.flatMap((projection) => projection.tables);

const createTables = async (db: pg.ClientBase, projections: readonly Projection[]): Promise<void> => {
  await db.query(`drop schema if exists ${NEXT} cascade; create schema ${NEXT}`);
  for (const table of tablesOf(projections)) {
    await db.query(`create table ${NEXT}.${table} (like read.${table} including all)`);
    await db
      .query(`select obj_description('read.${table}'::regclass) as text`)
      .then(({ rows }) =>
        db.query(`comment on table ${NEXT}.${table} is ${pg.escapeLiteral(rows[0]?.text ?? '')}`),
      );
  }
};

/**
 * Takes the place of the tables in use, unless those are further on by now; not where only deleted events are between.
 * The checkpoints are locked first, so the leader waits; its guard then finds that they moved, and it starts again from
 * them.
 */
const switchOver = async (
  db: pg.ClientBase,
  projections: readonly Projection[],
  position: Position | null,
  store: EventStore,
): Promise<boolean> => {
  const names = projections.map((projection) => projection.name);
  await db.query('begin');
  const { rows } = await db.query(
    'select position from read.projection where name = any ($1) order by name for update',
    [names],
  );
  const furthest = rows.reduce<bigint | null>(
    (most, row) =>
      row.position !== null && BigInt(row.position) > (most ?? -1n) ? BigInt(row.position) : most,
    position,
  );
  if (furthest !== position && ((await store.head()) ?? -1n) > (position ?? -1n)) {
    await db.query('rollback');
    return false;
  }
  for (const table of tablesOf(projections)) {
    await db.query(`drop table read.${table}`);
    await db.query(`alter table ${NEXT}.${table} set schema read`);
  }
  await db.query(
    `insert into read.projection (name, position) select n, $2 from unnest($1::text[]) n
     on conflict (name) do update set position = $2, stopped_by = null`,
    [names, furthest],
  );
  await db.query('commit');
  return true;
};
