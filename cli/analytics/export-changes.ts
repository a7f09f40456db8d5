import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { openClient } from '../../platform/postgres/pool.ts';
import { CHANGES, type Changes, SINCE } from './changes.ts';
import { lockTarget, partialName, removePartials } from './export-lock.ts';
import { CELLS, type Cell, parquetFile, type RowFile } from './export-view.ts';
import { findView, type View } from './views.ts';

/** The load is refused; the message is for the operator. */
export class LoadRefused extends Error {}

export interface LoadOptions {
  readonly url: string;
  readonly view: string;
  /** Position at which the load before ended; 0: all rows. */
  readonly since: bigint;
  /** Folder of the loads of all views. */
  readonly out: string;
  /** Aborts the load, leaving the folder as it was. */
  readonly signal?: AbortSignal;
  /** Called with the number of rows written so far, and of all. */
  readonly onRows?: (done: number, total: number) => void;
}

interface Loaded {
  readonly view: string;
  /** Positions as text, because JSON's numbers are not exact. */
  readonly since: string;
  /** Where the next load begins. */
  readonly position: string;
  readonly rows: number;
  /** How many of the rows tell of a deletion. */
  readonly deleted: number;
  readonly files: number;
  readonly bytes: number;
  /** Holds the files; null: nothing changed. */
  readonly folder: string | null;
}

const FETCHED_AT_ONCE = 5_000;
/** Spelling of a null partition, as Hive, Spark and DuckDB read it. */
const NO_DAY = '__HIVE_DEFAULT_PARTITION__';

/**
 * Exports the rows of a view that changed after a position, as of one moment, as a folder of Parquet files, one a UTC day of the
 * view's time. The bound of the load is the position that all projections of the view have passed at that moment. The folder
 * appears under its name once it is complete; it then replaces earlier loads from that position or a later one.
 * @throws LoadRefused, TargetBusy, UnknownView, pg's and the file system's errors
 */
export async function exportChanges(options: LoadOptions): Promise<Loaded> {
  const { url, since, out } = options;
  const db = await openClient(url, 'doorplate export', { types: CELLS });
  const loads = join(out, options.view);
  const partial = join(loads, partialName(`.${since}`));
  try {
    const changes = CHANGES[options.view];
    if (changes === undefined) throw await withoutPositions(db, options.view);
    await mkdir(loads, { recursive: true, mode: 0o700 });
    await lockTarget(db, out, options.view);
    await removePartials(loads, null);
    const { view, position } = await beginLoad(db, options, changes);
    await refuseOlder(loads, since, position);
    const sql = changesSql(view, changes, { since, position });
    const { rows: counts } = await db.query<{ total: bigint }>(
      `${sql.keys} select count(*) as total from changed`,
    );
    const total = Number(counts[0]?.total ?? 0);
    await mkdir(partial, { mode: 0o700 });
    await db.query(`declare exported no scroll cursor for ${sql.rows}`);
    const written = await writeDays(db, { ...options, partial, total, name: `${since}-${position}` }, view);
    const folder = await publish(loads, since, total > 0 ? partial : null);
    return {
      view: view.name,
      since: String(since),
      position: String(position),
      ...written,
      folder,
    };
  } finally {
    await rm(partial, { recursive: true, force: true });
    await db.end();
  }
}

/** Makes the refusal of a view whose rows cannot be told by position. @throws UnknownView */
async function withoutPositions(db: pg.ClientBase, name: string): Promise<LoadRefused> {
  await findView(db, name);
  const views = Object.keys(CHANGES).join(', ');
  return new LoadRefused(
    `no_positions: the rows of ${name} have no id or no position in the log: export it without --since; with it there are ${views}`,
  );
}

/** Begins the transaction of a load. @returns the view and the load's bound @throws LoadRefused */
async function beginLoad(
  db: pg.ClientBase,
  { since, view: name }: LoadOptions,
  { projections, present, gone, forgets }: Changes,
): Promise<{ view: View; position: bigint }> {
  await db.query(`begin isolation level repeatable read read only; set local timezone to 'UTC'`);
  // The snapshot begins with the first query. A rebuild that replaced a table between the two would leave it empty to the snapshot.
  const tables = new Set([...present, ...gone].flatMap((sql) => sql.match(/\bread\.\w+/g) ?? []));
  await db.query(`lock table ${[`analytics.${name}`, ...tables].join(', ')} in access share mode`);
  const { rows } = await db.query<{ position: bigint | null; forgotten: bigint | null }>(
    `select case when count(position) = cardinality($1::text[]) then min(position) end as position,
            (select position from work.forgotten_change where name = $2) as forgotten
     from read.projection where name = any ($1)`,
    [projections, forgets ?? null],
  );
  const { position = null, forgotten = null } = rows[0] ?? {};
  if (since > (position ?? 0n)) {
    throw new LoadRefused(
      `position_ahead: the read models of ${name} are at ${position ?? 0n}, before ${since}: begin again with --since 0 in an empty folder if the log was restored`,
    );
  }
  if (since > 0n && since < (forgotten ?? 0n)) {
    throw new LoadRefused(
      `position_too_old: expiries after ${since} have been forgotten, up to ${forgotten}: begin again with --since 0`,
    );
  }
  return { view: await findView(db, name), position: position ?? 0n };
}

/** Makes the SQL of a load: `keys` defines `changed`, one row for each row that changed; `rows` selects them in order of time. */
function changesSql(
  { name, columns, time }: View,
  { id, present, gone }: Changes,
  { since, position }: { readonly since: bigint; readonly position: bigint },
): { keys: string; rows: string } {
  // Rows of before 0.3.0 have the position 0. The first load has no row to take back.
  const [after, parts] = since === 0n ? [-1n, present] : [since, [...present, ...gone]];
  const ids = id.join(', ');
  const keys = `
    with part (${ids}, changed_position) as (${parts.join(' union all ').replaceAll(SINCE, String(after))}),
    changed as (
      select ${ids}, max(changed_position) as changed_position from part
      group by ${ids} having max(changed_position) <= ${position})`;
  const shown = columns.map(
    (column) => `${id.includes(column.name) ? 'c' : 'v'}.${pg.escapeIdentifier(column.name)}`,
  );
  // Of null ids only http_status is one; IS NOT DISTINCT FROM alone would rule out a hash join.
  const same = id
    .map((column) => `v.${column} ${column === 'http_status' ? 'is not distinct from' : '='} c.${column}`)
    .join(' and ');
  // OFFSET 0 keeps the planner from a plain join, for which a view of sums is summed up as a whole: only the first load needs that.
  const joined =
    since === 0n
      ? `analytics.${name} v on ${same}`
      : `lateral (select * from analytics.${name} v where ${same} offset 0) v on true`;
  const day = `${id.includes(time) ? 'c' : 'v'}.${pg.escapeIdentifier(time)}`;
  return {
    keys,
    rows: `${keys}
      select ${shown.join(', ')}, c.changed_position, v.${pg.escapeIdentifier(time)} is null as deleted
      from changed c left join ${joined} order by ${day}`,
  };
}

interface DaysOptions extends LoadOptions {
  readonly partial: string;
  readonly total: number;
  /** Name of the files, without their type. */
  readonly name: string;
}

/** Writes the rows of the cursor, which come in order of time, to a file a day. */
async function writeDays(
  db: pg.ClientBase,
  { partial, name, total, signal, onRows }: DaysOptions,
  view: View,
): Promise<Pick<Loaded, 'rows' | 'deleted' | 'files' | 'bytes'>> {
  const columns: View['columns'] = [
    ...view.columns,
    { name: 'changed_position', type: 'bigint' },
    { name: 'deleted', type: 'boolean' },
  ];
  const time = columns.findIndex((column) => column.name === view.time);
  const written = { rows: 0, deleted: 0, files: 0, bytes: 0 };
  let file: (RowFile & { readonly day: string; readonly path: string }) | null = null;

  const complete = async (): Promise<void> => {
    if (file === null) return;
    await file.end();
    written.files += 1;
    written.bytes += (await stat(file.path)).size;
    file = null;
  };

  const begin = async (day: string): Promise<NonNullable<typeof file>> => {
    await complete();
    await mkdir(join(partial, `day=${day}`), { mode: 0o700 });
    const path = join(partial, `day=${day}`, `${name}.parquet`);
    await (await open(path, 'wx', 0o600)).close();
    return { ...(await parquetFile(path, { ...view, columns })), day, path };
  };

  for (;;) {
    signal?.throwIfAborted();
    const { rows } = await db.query<Cell[]>({
      text: `fetch forward ${FETCHED_AT_ONCE} from exported`,
      rowMode: 'array',
    });
    if (rows.length === 0) break;
    for (const [day, ofDay] of Map.groupBy(rows, (row) => dayOf(row[time] ?? null))) {
      if (file?.day !== day) file = await begin(day);
      await file.write(ofDay);
    }
    written.rows += rows.length;
    written.deleted += rows.filter((row) => row.at(-1) === true).length;
    onRows?.(written.rows, total);
  }
  await complete();
  return written;
}

function dayOf(time: Cell): string {
  if (time === null) return NO_DAY;
  return time instanceof Date ? time.toISOString().slice(0, 10) : String(time);
}

/** Loads in a folder that begin at the position or later. Zeros may stand before their position. */
async function loadsFrom(loads: string, since: bigint): Promise<string[]> {
  return (await readdir(loads)).filter((name) => {
    const [, from] = /^since=(\d+)$/.exec(name) ?? [];
    return from !== undefined && BigInt(from) >= since;
  });
}

/** @throws LoadRefused if a load that this one would replace ends later */
async function refuseOlder(loads: string, since: bigint, position: bigint): Promise<void> {
  for (const load of await loadsFrom(loads, since)) {
    for (const file of await readdir(join(loads, load), { recursive: true })) {
      const [, to] = /-(\d+)\.parquet$/.exec(file) ?? [];
      if (to === undefined || BigInt(to) <= position) continue;
      throw new LoadRefused(
        `position_behind: the read models are at ${position}, and ${join(loads, load)} ends at ${to}: wait for them, or move it away if the log was restored`,
      );
    }
  }
}

/**
 * Puts a load into its place, and then removes those that begin at its position or later: it covers all that they do. One of the same
 * position keeps its name until it is gone; the new one has a zero more meanwhile, and for readers the same position.
 * @param partial the complete load; null: nothing changed
 * @returns the folder of the load
 */
async function publish(loads: string, since: bigint, partial: string | null): Promise<string | null> {
  const covered = await loadsFrom(loads, since);
  const name = `since=${since}`;
  let first = name;
  while (covered.includes(first)) first = first.replace('=', '=0');
  if (partial !== null) await rename(partial, join(loads, first));
  for (const load of covered) await rm(join(loads, load), { recursive: true });
  if (partial === null) return null;
  if (first !== name) await rename(join(loads, first), join(loads, name));
  return join(loads, name);
}
