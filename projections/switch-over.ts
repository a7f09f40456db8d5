import type pg from 'pg';
import type { EventStore, Position } from '../event-store/port.ts';
import { pause } from '../platform/clock/waiting.ts';
import { IDLE_TRANSACTION } from '../platform/postgres/pool.ts';
import type { Projection } from './projection.ts';

export interface Switching {
  /** Must not be in a transaction. */
  readonly db: pg.ClientBase;
  readonly store: EventStore;
  readonly projections: readonly Projection[];
  readonly onWaiting: (() => void) | undefined;
}

/** Schema of the new tables until the switch. */
export const NEXT = 'read_next';
const OLD = 'read_old';

/** The switch first tries to lock all tables without waiting, so that no reader has to queue behind it. */
const NOWAIT_ATTEMPTS = 20;
const NOWAIT_PAUSE_MS = 10;
/**
 * Then it queues for the locks. Short, because all later readers queue behind it, and below PostgreSQL's deadlock_timeout
 * (a second), so that in a deadlock the switch is the side that gives up.
 */
const LOCK_TIMEOUT_MS = 500;
/** A reader that is seen in two looks is a long one. */
const LOOK_MS = 1_000;
/** Then it tries again all the same: where long readers overlap, there may always be one. */
const MAX_LOOKS = 30;
const LOCK_NOT_AVAILABLE = '55P03';
const DEADLOCK = '40P01';
const NOT_ALLOWED = '42501';

export const tablesOf = (projections: readonly Projection[]): string[] =>
  projections.flatMap((projection) => projection.tables);

/**
 * Replaces the live tables by the new ones, unless the live ones have applied later events that still exist. Where a
 * reader (an analyst, an export, a backup) holds the tables, it waits for that to end, and tries again.
 * @returns whether the tables were replaced
 */
export const switchOver = async (switching: Switching, position: Position | null): Promise<boolean> => {
  const { db, onWaiting } = switching;
  for (;;) {
    try {
      return await trySwitch(switching, position);
    } catch (error) {
      if (!isHeld(error)) throw error;
      await db.query('rollback');
      onWaiting?.();
      await longReadersGone(switching);
    }
  }
};

/** Waits without locking: all later readers would queue behind a lock that is waited for. */
const longReadersGone = async ({ db, projections }: Switching): Promise<void> => {
  const tables = tablesOf(projections);
  let before = await readersOf(db, tables);
  for (let look = 0; look < MAX_LOOKS; look += 1) {
    await pause(LOOK_MS);
    const now = await readersOf(db, tables);
    if (![...now].some((transaction) => before.has(transaction))) return;
    before = now;
  }
};

/**
 * Returns the transactions that hold the tables. A reader of a view holds its tables as well. Where the service may not read locks
 * (docs/analytics.md), none are seen.
 */
const readersOf = async (db: pg.ClientBase, tables: readonly string[]): Promise<Set<string>> => {
  const looking = db.query<{ transaction: string }>(
    `select distinct virtualtransaction as transaction from pg_locks
     where database = (select oid from pg_database where datname = current_database())
       and relation = any ($1::text[]::regclass[]) and granted`,
    [tables.map((table) => `read.${table}`)],
  );
  const { rows } = await looking.catch((error: unknown) => {
    if ((error as { code?: string }).code !== NOT_ALLOWED) throw error;
    return { rows: [] };
  });
  return new Set(rows.map(({ transaction }) => transaction));
};

const isHeld = (error: unknown): boolean => {
  const { code } = error as { code?: string };
  return code === LOCK_NOT_AVAILABLE || code === DEADLOCK;
};

/** Locks the checkpoints first, so that the leader waits; it then finds them moved and restarts from them. */
const trySwitch = async (
  { db, store, projections }: Switching,
  position: Position | null,
): Promise<boolean> => {
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
};

/**
 * A view is bound to the tables that it was created over, which therefore cannot be dropped. So views are recreated from
 * their own definitions, whose names now resolve to the new tables; their grants stay.
 */
const replaceTables = async (db: pg.ClientBase, tables: readonly string[]): Promise<void> => {
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
};

/** Locks views before their tables, in the same order as readers of the views. */
const lockAll = async (db: pg.ClientBase, relations: readonly string[]): Promise<void> => {
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
};

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
