/** Databases of earlier releases, written by `record.ts` and opened by upgrade tests. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { gunzipSync } from 'node:zlib';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { migrate } from '../../platform/postgres/migrate.ts';
import type { answersOf, Everything, Surroundings } from '../support/everything.ts';

/** In the middle of a day. The clock does not move while a release is recorded. */
export const RECORDED_AT = Date.UTC(2026, 10, 21, 12, 30);

export interface RecordedDatabase {
  /** The names of its migrations, in order. */
  readonly migrations: readonly string[];
  /** Their SQL, of a release whose migrations a baseline has replaced. */
  readonly schema?: readonly string[];
  /** `schema.name` of each table, and its rows as `copy … to stdout` writes them. */
  readonly tables: Readonly<Record<string, string>>;
}

export interface Recorded {
  readonly used: Everything;
  /** Of the session feed, after its second session. */
  readonly cursor: string;
  readonly database: RecordedDatabase;
  readonly answers: Awaited<ReturnType<typeof answersOf>>;
}

const RECEIVER = 'http://the-receiver.invalid/';
const CLOSED = 'http://the-closed-port.invalid/';

/** Replaces the webhook URLs: the ports differ between runs. */
export const withoutPorts = (json: string, { webhookUrls }: Surroundings): string =>
  json.replaceAll(webhookUrls.receiver, RECEIVER).replaceAll(webhookUrls.closed, CLOSED);

const readGzipped = (path: string, { webhookUrls }: Surroundings) => {
  const json = gunzipSync(readFileSync(new URL(path, import.meta.url))).toString();
  return JSON.parse(json.replaceAll(RECEIVER, webhookUrls.receiver).replaceAll(CLOSED, webhookUrls.closed));
};

/** @param release the commit or version that names its file in `releases/` */
export const readRecorded = (release: string, around: Surroundings): Recorded =>
  readGzipped(`releases/${release}.json.gz`, around);

/** Reads what was made in a dumped database, and the answers that its release gave. `name`: of the dump in `dumps/`. */
export const readDumpAnswers = (name: string, around: Surroundings): Omit<Recorded, 'database'> =>
  readGzipped(`dumps/${name}-answers.json.gz`, around);

/** Writes the files of a recorded dump into a new folder. `name`: of its file in `dumps/`. */
export const writeRecordedDump = (name: string, folder: string, around: Surroundings): void => {
  const files: Record<string, string> = readGzipped(`dumps/${name}.json.gz`, around);
  mkdirSync(folder);
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
};

const connected = async <T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
};

const OURS = `
  select format('%I.%I', n.nspname, c.relname) as table
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where c.relkind = 'r' and n.nspname in ('eventlog', 'read', 'work')
  order by 1`;

/** Copies all rows of the product's own tables. */
export const dumpDatabase = (url: string): Promise<RecordedDatabase> =>
  connected(url, async (client) => {
    await client.query('begin isolation level repeatable read read only');
    const { rows: names } = await client.query('select name from public.doorplate_migrations order by id');
    const { rows } = await client.query<{ table: string }>(OURS);
    const tables: Record<string, string> = {};
    for (const { table } of rows) {
      tables[table] = await text(client.query(copyTo(`copy ${table} to stdout`)));
    }
    return { migrations: names.map(({ name }) => name), tables };
  });

const runRecorded = async (client: pg.Client, names: readonly string[], schema: readonly string[]) => {
  for (const sql of schema) await client.query(sql);
  await client.query(
    `create table public.doorplate_migrations (id serial primary key, name varchar(255) not null, run_on timestamp not null);
     create table public.doorplate_migrating ()`,
  );
  await client.query(
    'insert into public.doorplate_migrations (name, run_on) select name, now() from unnest($1::text[]) name',
    [names],
  );
};

/** Runs the migrations that the release had, in an empty database, and fills the tables. */
export const loadDatabase = async (
  url: string,
  { migrations, schema, tables }: RecordedDatabase,
): Promise<void> => {
  if (schema) await connected(url, (client) => runRecorded(client, migrations, schema));
  else await migrate(url, { only: migrations });
  await connected(url, async (client) => {
    await client.query('begin');
    const { rows } = await client.query<{ table: string }>(OURS);
    await client.query(`truncate ${rows.map(({ table }) => table).join(', ')}`);
    for (const [table, lines] of Object.entries(tables)) {
      await pipeline(Readable.from([lines]), client.query(copyFrom(`copy ${table} from stdin`)));
    }
    await client.query(
      `select setval(pg_get_serial_sequence('eventlog.event', 'position'), max(position)) from eventlog.event`,
    );
    await client.query('commit');
  });
};

/** Explanations, which a release may change. */
const isProse = (name: string) => name === 'accounting';

const parsed = (body: string) => {
  try {
    return JSON.parse(body, (name, value) => (isProse(name) ? undefined : value));
  } catch {
    return body;
  }
};
/** Answers whose bodies are compared property by property: a release may add properties. */
export const comparable = (answers: Recorded['answers']) => ({
  ...answers,
  // A release may change the script itself.
  script: { ...answers.script, body: null },
  told: answers.told.map(({ body, ...rest }) => ({ ...rest, body: parsed(body) })),
});
