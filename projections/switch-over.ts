import type pg from 'pg';
import type { EventStore, Position } from '../event-store/port.ts';
import { createWakeup } from '../platform/wakeup.ts';
import type { Projection } from './projection.ts';

export interface Switching {
  /** In no transaction. */
  readonly db: pg.ClientBase;
  readonly store: EventStore;
  readonly projections: readonly Projection[];
  readonly onWaiting: (() => void) | undefined;
}

/** Where the new tables are until they are switched. */
export const NEXT = 'read_next';
const OLD = 'read_old';

/** So often it looks for a moment in which nobody reads any of the tables: then nobody waits for it. */
const LOOKS = 20;
const LOOK_MS = 10;
/**
 * Then it queues for them, but no longer than this for each, as all who come after it wait with it; and for less than
 * PostgreSQL's deadlock_timeout (a second), so that of two who wait for each other it is the one that gives way.
 */
const HELD_MS = 500;
const AGAIN_MS = 1_000;
const LOCK_NOT_AVAILABLE = '55P03';
const DEADLOCK = '40P01';

export const tablesOf = (projections: readonly Projection[]): string[] =>
  projections.flatMap((projection) => projection.tables);

/**
 * Takes the place of the tables in use, unless those are further on by now; not where only deleted events are between.
 * While somebody reads them (an analyst, an export, a backup) it tries again and again.
 * @returns whether it did
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
      await createWakeup().wait(AGAIN_MS);
    }
  }
};

const isHeld = (error: unknown): boolean => {
  const { code } = error as { code?: string };
  return code === LOCK_NOT_AVAILABLE || code === DEADLOCK;
};

/**
 * The checkpoints are locked first, so the leader waits; its guard then finds that they moved, and it starts again from
 * them.
 */
const trySwitch = async (
  { db, store, projections }: Switching,
  position: Position | null,
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
 * A view is bound to the very tables that it was made over, and they cannot be dropped under it. So views over them are
 * made anew from their own text, in which the names now stand for the new tables; whoever may read them still may.
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

/** Views before their tables, as those who read them lock them. */
const lockAll = async (db: pg.ClientBase, relations: readonly string[]): Promise<void> => {
  const lock = `lock table ${relations.join(', ')} in access exclusive mode`;
  for (let look = 0; look < LOOKS; look += 1) {
    await db.query('savepoint looking');
    try {
      await db.query(`${lock} nowait`);
      return;
    } catch (error) {
      if (!isHeld(error)) throw error;
      await db.query('rollback to looking');
      await createWakeup().wait(LOOK_MS);
    }
  }
  await db.query(`set local lock_timeout = ${HELD_MS}`);
  await db.query(lock);
};

interface ViewOver {
  readonly name: string;
  readonly options: string | null;
  readonly definition: string;
}

/** Those of `analytics`, and whichever else an operator has made. */
const VIEWS_OVER = `
  select format('%I.%I', n.nspname, c.relname) as name, array_to_string(c.reloptions, ', ') as options,
         pg_get_viewdef(c.oid) as definition
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where c.relkind = 'v' and exists (
    select from pg_rewrite r join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
    where r.ev_class = c.oid and d.refclassid = 'pg_class'::regclass
      and d.refobjid in (select to_regclass('read.' || t) from unnest($1::text[]) t))
  order by c.oid`;
