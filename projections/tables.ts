/** Pieces of SQL that several read models use. */
import type pg from 'pg';
import { forgetInBatches } from '../platform/postgres/transactions.ts';

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
