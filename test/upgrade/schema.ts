import pg from 'pg';

const ROOMS = `('eventlog', 'read', 'work', 'analytics')`;

/** What `pg_dump --schema-only` shows of the product's own schemas, one line an object, sorted. */
const SCHEMA = `
  with relation as (
    select c.*, format('%I.%I', n.nspname, c.relname) as name
    from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname in ${ROOMS}),
  routine as (
    select p.*, p.oid::regprocedure::text as name
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname in ${ROOMS})
  select line from (
    select format('schema %s: %s', nspname, obj_description(oid)) as line from pg_namespace where nspname in ${ROOMS}
    union all
    select format('table %s %s %s: %s', name, relpersistence, reloptions, obj_description(oid)) from relation where relkind = 'r'
    union all
    select format('view %s: %s %s', name, pg_get_viewdef(oid), obj_description(oid)) from relation where relkind = 'v'
    union all
    select format('column %s %s %s %s not null %s default %s identity %s generated %s: %s', r.name, a.attnum, a.attname,
             format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attidentity, a.attgenerated,
             col_description(r.oid, a.attnum))
    from relation r join pg_attribute a on a.attrelid = r.oid left join pg_attrdef d on d.adrelid = r.oid and d.adnum = a.attnum
    where r.relkind in ('r', 'v') and a.attnum > 0 and not a.attisdropped
    union all
    select format('index %s: %s', pg_get_indexdef(oid), reloptions) from relation where relkind = 'i'
    union all
    select format('constraint %s %s: %s', r.name, c.conname, pg_get_constraintdef(c.oid))
    from relation r join pg_constraint c on c.conrelid = r.oid
    union all
    select format('function %s: %s %s', name, pg_get_functiondef(oid), obj_description(oid)) from routine) lines
  order by line collate "C"`;

/** Describes the product's schemas in a database, for a comparison of two. */
export async function describeSchema(url: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ line: string }>(SCHEMA);
    return rows.map(({ line }) => line);
  } finally {
    await client.end();
  }
}
