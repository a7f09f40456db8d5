import pg from 'pg';
import type { EventStore, Position, RecordedEvent } from '../event-store/port.ts';
import { pause } from '../platform/clock/waiting.ts';
import { IDLE_TRANSACTION, openClient } from '../platform/postgres/pool.ts';
import { exclusiveJob } from '../platform/postgres/transactions.ts';
import { type ProjectionGroup, projectionGroups } from './all.ts';
import { type Projection, relevantTo, sessionSettings, storableEvents } from './projection.ts';

interface Switching {
  /** Must not be in a transaction. */
  readonly db: pg.ClientBase;
  readonly store: EventStore;
  readonly projections: readonly Projection[];
  readonly onWaiting: (() => void) | undefined;
}

/** Schema of the new tables until the switch. */
const NEXT = 'read_next';
const OLD = 'read_old';

/** The switch first tries to lock all tables without waiting, so that no reader has to queue behind it. */
const NOWAIT_ATTEMPTS = 20;
const NOWAIT_PAUSE_MS = 10;
/**
 * Then it queues for the locks. Short, because all later readers queue behind it, and below PostgreSQL's deadlock_timeout
 * (a second), so that in a deadlock the switch is the side that gives up.
 */
const LOCK_TIMEOUT_MS = 500;
/** Then it waits without a lock, because all later readers would queue behind a lock that is waited for. */
const RETRY_MS = 5_000;
const LOCK_NOT_AVAILABLE = '55P03';
const DEADLOCK = '40P01';

const tablesOf = (projections: readonly Projection[]): string[] =>
  projections.flatMap((projection) => projection.tables);

/**
 * Replaces the live tables by the new ones, unless the live ones have applied later events that still exist. Where a
 * reader (an analyst, an export, a backup) holds the tables, it tries again a little later.
 * @returns whether the tables were replaced
 */
export async function switchOver(switching: Switching, position: Position | null): Promise<boolean> {
  const { db, onWaiting } = switching;
  for (;;) {
    try {
      return await trySwitch(switching, position);
    } catch (error) {
      if (!isHeld(error)) throw error;
      await db.query('rollback');
      onWaiting?.();
      await pause(RETRY_MS);
    }
  }
}

function isHeld(error: unknown): boolean {
  const { code } = error as { code?: string };
  return code === LOCK_NOT_AVAILABLE || code === DEADLOCK;
}

/** Locks the checkpoints first, so that the leader waits; it then finds them moved and restarts from them. */
async function trySwitch({ db, store, projections }: Switching, position: Position | null): Promise<boolean> {
  const names = projections.map((projection) => projection.name);
  await db.query(`begin; set local idle_in_transaction_session_timeout = '${IDLE_TRANSACTION}'`);
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
  await replaceTables(db, tablesOf(projections));
  await db.query(
    `insert into read.projection (name, position) select n, $2 from unnest($1::text[]) n
     on conflict (name) do update set position = $2, stopped_by = null`,
    [names, furthest],
  );
  await db.query('commit');
  return true;
}

/**
 * A view is bound to the tables that it was created over, which therefore cannot be dropped. So views are recreated from
 * their own definitions, whose names now resolve to the new tables; their grants stay.
 */
async function replaceTables(db: pg.ClientBase, tables: readonly string[]): Promise<void> {
  const { rows: views } = await db.query<ViewOver>(VIEWS_OVER, [tables]);
  await lockAll(db, [...views.map(({ name }) => name), ...tables.map((table) => `read.${table}`)]);
  await db.query(`create schema ${OLD}`);
  for (const table of tables) {
    await db.query(`alter table read.${table} set schema ${OLD}`);
    await db.query(`alter table ${NEXT}.${table} set schema read`);
  }
  for (const { name, options, definition } of views) {
    const having = options === null ? '' : `with (${options})`;
    await db.query(`create or replace view ${name} ${having} as ${definition}`);
  }
  for (const table of tables) await db.query(`drop table ${OLD}.${table}`);
  await db.query(`drop schema ${OLD}`);
}

/** Locks views before their tables, in the same order as readers of the views. */
async function lockAll(db: pg.ClientBase, relations: readonly string[]): Promise<void> {
  const lock = `lock table ${relations.join(', ')} in access exclusive mode`;
  for (let attempt = 0; attempt < NOWAIT_ATTEMPTS; attempt += 1) {
    await db.query('savepoint before_lock');
    try {
      await db.query(`${lock} nowait`);
      return;
    } catch (error) {
      if (!isHeld(error)) throw error;
      await db.query('rollback to before_lock');
      await pause(NOWAIT_PAUSE_MS);
    }
  }
  await db.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
  await db.query(lock);
}

interface ViewOver {
  readonly name: string;
  readonly options: string | null;
  readonly definition: string;
}

/** Views of `analytics`, and any that an operator has created. */
const VIEWS_OVER = `
  select format('%I.%I', n.nspname, c.relname) as name, array_to_string(c.reloptions, ', ') as options,
         pg_get_viewdef(c.oid) as definition
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where c.relkind = 'v' and exists (
    select from pg_rewrite r join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
    where r.ev_class = c.oid and d.refclassid = 'pg_class'::regclass
      and d.refobjid in (select to_regclass('read.' || t) from unnest($1::text[]) t))
  order by c.oid`;

interface RebuildOptions {
  readonly store: EventStore;
  readonly url: string;
  readonly projections: readonly Projection[];
  /** Called each time that long readers of the tables delay the switch. */
  readonly onWaiting?: () => void;
}

interface Rebuilt {
  readonly events: number;
  readonly position: Position | null;
}

const BATCH = 2_000;

/** Rebuilds projections beside the live tables in one pass over the log, then switches the tables in one transaction. */
export const rebuild = (options: RebuildOptions): Promise<Rebuilt> =>
  exclusiveJob(options.url, 'rebuild', () => rebuildAlone(options));

async function rebuildAlone(options: RebuildOptions): Promise<Rebuilt> {
  const { store, url, projections, onWaiting } = options;
  const db = await openClient(url, 'doorplate rebuild');
  const done = new AbortController();
  const lanes: Lane[] = [];
  try {
    await createTables(db, projections);
    let events = 0;
    let position: Position | null = null;
    const head = await store.head();
    const switching = { db, store, projections, onWaiting };
    if (head === null) await switchOver(switching, null);
    else {
      for (const together of apart(projections)) lanes.push(await openLane(url, together));
      // Expired events too, because the live tables have seen them (docs/adr/0008).
      const following = { after: null, batchSize: BATCH, includeExpired: true, signal: done.signal };
      for await (const batch of oneAhead(store.follow(following))) {
        const storable = storableEvents(batch.events);
        await allDone(lanes.map((lane) => applyIn(lane, storable)));
        events += batch.events.length;
        position = batch.position;
        if (position < head) continue;
        for (const lane of lanes)
          for (const { carryOver } of lane.projections) if (carryOver) await lane.db.query(carryOver);
        if (await switchOver(switching, position)) break;
      }
    }
    return { events, position };
  } finally {
    done.abort();
    for (const lane of lanes) await lane.db.end();
    await db.query(`rollback; drop schema if exists ${NEXT} cascade`).catch(() => undefined);
    await db.end();
  }
}

/** Projections that share a connection, beside those of others: no two write to one table, and none reads another's. */
interface Lane {
  readonly db: pg.Client;
  readonly projections: readonly Projection[];
}

/** Groups projections as they run: those of a group stay together. */
function apart(projections: readonly Projection[]): (readonly Projection[])[] {
  const groups: readonly ProjectionGroup[] = Object.values(projectionGroups);
  return [
    ...Map.groupBy(projections, (one) => groups.find((group) => group.projections.includes(one))).values(),
  ];
}

async function openLane(url: string, projections: readonly Projection[]): Promise<Lane> {
  const db = await openClient(url, 'doorplate rebuild', { settings: sessionSettings(NEXT), pipeline: true });
  return { db, projections };
}

async function applyIn({ db, projections }: Lane, events: readonly RecordedEvent[]): Promise<void> {
  const begun = db.query('begin');
  await allDone([
    begun,
    ...projections.map(async (projection) => projection.apply(relevantTo(projection, events), db)),
  ]);
  await db.query('commit');
}

/** Waits for all of them, so that none runs on. @throws the first failure */
async function allDone(work: readonly Promise<unknown>[]): Promise<void> {
  await Promise.allSettled(work);
  await Promise.all(work);
}

/** Reads the next batch while the current one is applied. A consumer that stops early must abort the source's signal. */
async function* oneAhead<T>(source: AsyncIterable<T>): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]();
  let next = iterator.next();
  for (;;) {
    const { done, value } = await next;
    if (done) return;
    next = iterator.next();
    // Prevents an unhandled rejection if the consumer stops early; otherwise the await above throws.
    next.catch(() => undefined);
    yield value;
  }
}

async function createTables(db: pg.ClientBase, projections: readonly Projection[]): Promise<void> {
  await db.query(`drop schema if exists ${NEXT} cascade; create schema ${NEXT}`);
  for (const table of tablesOf(projections)) {
    await db.query(`create table ${NEXT}.${table} (like read.${table} including all)`);
    await db
      .query(`select obj_description('read.${table}'::regclass) as text`)
      .then(({ rows }) =>
        db.query(`comment on table ${NEXT}.${table} is ${pg.escapeLiteral(rows[0]?.text ?? '')}`),
      );
  }
}
