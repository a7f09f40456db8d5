import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allProjections } from '../../projections/all.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';

let database: TestDatabase;
let client: pg.Client;
beforeAll(async () => {
  database = await testDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

const COLUMNS = `
  select n.nspname as schema, c.relname as table, obj_description(c.oid) as about, a.attname as column,
         format_type(a.atttypid, a.atttypmod) as type, a.attnotnull as required,
         col_description(c.oid, a.attnum) as comment
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  where n.nspname in ('analytics', 'read', 'work', 'eventlog') and c.relkind in ('r', 'v')
  order by n.nspname collate "C", c.relname collate "C", a.attnum`;

describe('docs/reference/data-dictionary.md', () => {
  it('describes every view and table as the migrations create it', async () => {
    const { rows } = await client.query(COLUMNS);
    const tables = [...Map.groupBy(rows, (row) => `${row.schema}.${row.table}`)].map(([name, columns]) => {
      const lines = columns.map(
        ({ schema, column, type, required, comment }) =>
          `| ${column} | ${type}${required || schema === 'analytics' ? '' : ', null'} | ${comment ?? ''} |`,
      );
      return `## ${name}\n\n${columns[0].about ?? ''}\n\n| column | type | |\n| --- | --- | --- |\n${lines.join('\n')}`;
    });
    const page = `# Data dictionary

The views and tables as the migrations make them, from their own comments; a test compares this page with the database.
\`analytics\` holds the views for analysts ([analytics.md](../analytics.md)), \`read\` the read models, \`work\` what
coordinates processes, \`eventlog\` the embedded event store.

${tables.join('\n\n')}
`;
    await expect(page).toMatchFileSnapshot('../../docs/reference/data-dictionary.md');
  });

  it('has a comment on every analyst view and each of its columns', async () => {
    const { rows } = await client.query(`select * from (${COLUMNS}) c where schema = 'analytics'`);
    expect(rows.length).toBeGreaterThan(100);
    expect(rows.filter(({ about, comment }) => !about || !comment)).toEqual([]);
  });

  it('names the projection that writes each read model', async () => {
    const { rows } = await client.query(
      `select c.relname as table from pg_class c where c.relnamespace = 'read'::regnamespace and c.relkind = 'r'`,
    );
    const owned = allProjections.flatMap(({ tables }) => tables);
    expect(new Set(owned).size).toBe(owned.length);
    expect(owned.toSorted()).toEqual(
      rows
        .map((row) => row.table)
        .filter((table) => table !== 'projection')
        .toSorted(),
    );
  });
});
