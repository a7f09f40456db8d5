/** A heavy partner beside those of a test: copies of all rows of the read models and the work tables. */
import type pg from 'pg';

/** Tables whose number of rows no partner determines. */
const SMALL = [
  'read.partner',
  'read.projection',
  'read.signal_day',
  'read.usage_source',
  'work.keyring',
  'work.lease',
  'work.process',
  'work.processor',
];
/** Columns of unique indexes that do not identify a row. */
const KINDS = ['kind', 'outcome', 'state', 'rate', 'source'];

interface Column {
  readonly table: string;
  readonly name: string;
  readonly type: string;
  /** Whether a unique index has it, and whether one without a uuid has it. */
  readonly unique: boolean;
  readonly unique_without_uuid: boolean;
}

const HAS_UUID = `exists (
  select from pg_attribute u where u.attrelid = i.indrelid and u.attnum = any (i.indkey) and u.atttypid = 'uuid'::regtype)`;
const COLUMNS = `
  select c.relnamespace::regnamespace || '.' || c.relname as table, a.attname as name, t.typname as type,
         exists (select from pg_index i where i.indrelid = c.oid and i.indisunique and a.attnum = any (i.indkey)) as unique,
         exists (select from pg_index i where i.indrelid = c.oid and i.indisunique and a.attnum = any (i.indkey)
                 and not ${HAS_UUID}) as unique_without_uuid
  from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  join pg_type t on t.oid = a.atttypid
  where c.relkind = 'r' and c.relnamespace in ('read'::regnamespace, 'work'::regnamespace)`;

/** Returns SQL for what copy number `n` has instead of the value; null: the value. Other ids become the heavy partner's. */
const changed = ({ name, type, unique, unique_without_uuid }: Column): string | null => {
  if (type === 'uuid') {
    const one = name === 'partner_id' ? `'heavy'` : `'heavy' || (original ->> '${name}')`;
    return `md5(${unique ? `n || '${name}'` : one})::uuid`;
  }
  if (type === 'timestamptz') return `(original ->> '${name}')::timestamptz + $2::interval`;
  if (name === 'key_id' && !unique) return `'heavy ' || (original ->> '${name}')`;
  if (!unique_without_uuid || KINDS.includes(name)) return null;
  if (type === 'text') return `(original ->> '${name}') || '-' || n`;
  return type === 'bytea' ? `'\\x' || md5(n || '${name}')` : null;
};

/** Copies the rows of each table that has any, at least `rows` of them, their times moved by `later`. @returns the tables */
export const copyForHeavyPartner = async (
  db: Pick<pg.ClientBase, 'query'>,
  rows: number,
  later: string,
): Promise<string[]> => {
  const { rows: columns } = await db.query<Column>(COLUMNS);
  const filled: string[] = [];
  for (const [table, own] of Map.groupBy(columns, (column) => column.table)) {
    if (SMALL.includes(table)) continue;
    const over = own.flatMap((column) => {
      const value = changed(column);
      return value === null ? [] : [`'${column.name}', ${value}`];
    });
    // A table without times names no `$2`, so the condition gives it a type.
    const { rowCount } = await db.query(
      `with source as (select to_jsonb(t) as original, row_number() over () as i, count(*) over () as of from ${table} t),
            copy as (select original, k * of + i as n from source, generate_series(0, $1 / of) k
                     where $2::interval is not null)
       insert into ${table} select made.*
       from copy, jsonb_populate_record(null::${table}, original || jsonb_build_object(${over.join(', ')})) made
       on conflict do nothing`,
      [rows, later],
    );
    if (rowCount) filled.push(table);
  }
  return filled;
};
