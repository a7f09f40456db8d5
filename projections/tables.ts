/** Pieces of SQL that several read models use. */
import type pg from 'pg';
import { forgetInBatches } from '../platform/postgres/transactions.ts';

/** Type of a column. `position`: one of the log, a bigint that TypeScript has as text; any other bigint is a number there. */
export type SqlType =
  | 'uuid'
  | 'text'
  | 'text[]'
  | 'date'
  | 'integer'
  | 'bigint'
  | 'position'
  | 'boolean'
  | 'json'
  | 'timestamptz';

/** The columns of a table by the fields of its row; with its own name where the column has another one than the field. */
export type Columns<Row> = {
  readonly [Field in keyof Row]: SqlType | readonly [type: SqlType, column: string];
};

const ISO = `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`;

const read = (column: string, type: SqlType): string => {
  if (type === 'timestamptz') return `to_char(${column} at time zone 'UTC', ${ISO})`;
  if (type === 'position') return `${column}::text`;
  return type === 'bigint' ? `${column}::float8` : column;
};

/** The fields of a table's rows, without some. */
export const fieldsOf = <Row, Left extends keyof Row = never>(
  table: Columns<Row>,
  without: readonly Left[] = [],
): Exclude<keyof Row & string, Left>[] =>
  (Object.keys(table) as (keyof Row & string)[]).filter(
    (field): field is Exclude<keyof Row & string, Left> => !without.includes(field as Left),
  );

/**
 * Returns the parts of SQL that read rows of a table, with instants in ISO 8601 and positions as text, and that write them: the columns'
 * names, their values in `r`, and the rows `r` of a parameter that `toJson` made. `without`: fields that are left out.
 */
export function rowSql<Row>(table: Columns<Row>, without: readonly (keyof Row)[] = []) {
  const known = fieldsOf(table, without).map((field) => {
    const column: SqlType | readonly [SqlType, string] = table[field];
    const [type, name] = typeof column === 'string' ? [column, field] : column;
    return { field, type, name };
  });
  const typed = known.map(({ field, type }) => `${field} ${type === 'position' ? 'bigint' : type}`);
  return {
    select: known.map(({ field, type, name }) => `${read(name, type)} as ${field}`).join(', '),
    columns: known.map(({ name }) => name).join(', '),
    values: known.map(({ field }) => `r.${field}`).join(', '),
    recordset: (parameter: string): string => `json_to_recordset(${parameter}) as r (${typed.join(', ')})`,
  };
}

/** Names each of these columns (separated by commas) with the table or alias before it. */
export const columnsOf = (alias: string, columns: string): string =>
  columns.replaceAll(/\w+/g, `${alias}.$&`);

/** The rows as one parameter, for `json_populate_recordset`. */
export const toJson = (rows: Iterable<unknown>): string => JSON.stringify([...rows]);

/**
 * Deletes the rows whose column is before a UTC day (`YYYY-MM-DD`) or a position, the oldest first, in batches that block
 * no other query for long.
 */
export function forgetBefore(
  db: pg.Pool,
  [table, column]: readonly [table: string, column: string],
  before: string,
  type: 'date' | 'bigint' = 'date',
): Promise<void> {
  const old = `select ctid from read.${table} where ${column} < $1::${type} order by ${column} limit $2`;
  return forgetInBatches(db, `delete from read.${table} where ctid = any (array(${old}))`, before);
}

/**
 * Does the same with ids of what expired, swept before a UTC day, and notes in each batch's transaction up to which position they
 * are gone: an incremental export that begins before that cannot tell which rows have expired.
 */
export function forgetExpiredBefore(
  db: pg.Pool,
  table: 'expired_session' | 'expired_reveal',
  day: string,
): Promise<void> {
  return forgetInBatches(
    db,
    `with gone as (
       delete from read.${table} where ctid = any (array(
         select ctid from read.${table} where day < $1::date order by day limit $2))
       returning changed_position),
     noted as (
       insert into work.forgotten_change as f (name, position)
       select '${table}', max(changed_position) from gone having count(*) > 0
       on conflict (name) do update set position = greatest(f.position, excluded.position))
     select from gone`,
    day,
  );
}
