import type pg from 'pg';

/** Type of a column's exported values. */
export type ColumnType = 'text' | 'integer' | 'bigint' | 'boolean' | 'instant' | 'day';

export interface Column {
  readonly name: string;
  readonly type: ColumnType;
}

export interface View {
  readonly name: string;
  readonly columns: readonly Column[];
  /** Column that a time range applies to: the first one of the view. */
  readonly time: string;
}

/** The view does not exist; the message lists the existing ones. */
export class UnknownView extends Error {}

const TYPES: Readonly<Record<string, ColumnType>> = {
  text: 'text',
  uuid: 'text',
  smallint: 'integer',
  integer: 'integer',
  bigint: 'bigint',
  boolean: 'boolean',
  'timestamp with time zone': 'instant',
  date: 'day',
};

/** Reads the columns of a view in the schema `analytics`. @throws UnknownView */
export async function findView(db: pg.ClientBase, name: string): Promise<View> {
  const { rows } = await db.query<{ view: string; column: string; type: string }>(
    `select c.relname as view, a.attname as column, format_type(a.atttypid, null) as type
     from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
     where c.relnamespace = 'analytics'::regnamespace and c.relkind = 'v' order by c.relname, a.attnum`,
  );
  const columns = rows
    .filter(({ view }) => view === name)
    .map(({ column, type }): Column => ({ name: column, type: typeOf(name, column, type) }));
  if (columns.length === 0) {
    const views = [...new Set(rows.map(({ view }) => view))].join(', ');
    throw new UnknownView(`view_not_found: ${name}; there are ${views}`);
  }
  const time = columns.find(({ type }) => type === 'instant' || type === 'day');
  if (!time) throw new Error(`the view ${name} has no time`);
  return { name, columns, time: time.name };
}

function typeOf(view: string, column: string, type: string): ColumnType {
  const known = TYPES[type];
  if (!known) throw new Error(`${view}.${column} is of type ${type}, which no export format supports`);
  return known;
}
