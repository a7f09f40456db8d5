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
  select from pg_attribute u where u.attrelid = i.indrelid and u.attnum = any (i.indkey) and u.atttypid = 'uuid'::regtype
  and u.attname <> 'asked_by')`;
const COLUMNS = `
  select c.relnamespace::regnamespace || '.' || c.relname as table, a.attname as name, t.typname as type,
         exists (select from pg_index i where i.indrelid = c.oid and i.indisunique and a.attnum = any (i.indkey)) as unique,
         exists (select from pg_index i where i.indrelid = c.oid and i.indisunique and a.attnum = any (i.indkey)
                 and not ${HAS_UUID}) as unique_without_uuid
  from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  join pg_type t on t.oid = a.atttypid
  where c.relkind = 'r' and c.relnamespace in ('read'::regnamespace, 'work'::regnamespace)`;

/** Returns SQL for what copy number `n` has in a column. Ids that do not identify a row become the heavy partner's. */
const copied = ({ name, type, unique, unique_without_uuid }: Column): string => {
  const value = `original."${name}"`;
  if (type === 'uuid') {
    const one = name === 'partner_id' ? `'heavy'` : `'heavy' || ${value}`;
    return `md5(${unique && name !== 'asked_by' ? `n || '${name}'` : one})::uuid`;
  }
  if (name === 'key_id' && !unique) return `'heavy ' || ${value}`;
  if (!unique_without_uuid || KINDS.includes(name)) return value;
  if (type === 'text') return `${value} || '-' || n`;
  return type === 'bytea' ? `decode(md5(n || '${name}'), 'hex')` : value;
};

/** Copies the rows of each table that has any, at least `rows` of them. @returns the tables */
export const copyForHeavyPartner = async (
  db: Pick<pg.ClientBase, 'query'>,
  rows: number,
): Promise<string[]> => {
  const { rows: columns } = await db.query<Column>(COLUMNS);
  const filled: string[] = [];
  for (const [table, own] of Map.groupBy(columns, (column) => column.table)) {
    if (SMALL.includes(table)) continue;
    const names = own.map(({ name }) => `"${name}"`).join(', ');
    const { rowCount } = await db.query(
      `with original as (select t.*, row_number() over () as copy_row, count(*) over () as copy_rows from ${table} t)
       insert into ${table} (${names}) select ${own.map(copied).join(', ')}
       from original, generate_series(0, $1 / copy_rows) k, lateral (select k * copy_rows + copy_row as n) copy
       on conflict do nothing`,
      [rows],
    );
    if (rowCount) filled.push(table);
  }
  return filled;
};
