import { createReadStream, createWriteStream, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { z } from 'zod';
import { migrate, ranMigrations } from './migrate.ts';
import { openClient } from './pool.ts';
import { baselined } from './upgrade-path.ts';

/** Copies the contents of a backup out of a database and into an empty one (docs/backup-and-upgrade.md, Backup and restore). */

/** Tables that cannot be derived from others. */
const KEPT_TABLES = [
  'eventlog.stream',
  'eventlog.event',
  'work.keyring',
  'work.user_password',
  'work.second_factor',
  'work.recovery_code',
  'work.user_profile',
  'work.enrichment_truncation',
  'work.expiring',
  'work.key_use',
  'work.lookup_use',
  'work.provider_day',
] as const;

/** A dump cannot be made in, or loaded from, this folder or database. The message is one line for the operator. */
export class DumpError extends Error {}

const MANIFEST = 'manifest.json';
const manifestSchema = z.object({
  /** Names of the migrations that had run, in order; they define the tables' columns. */
  migrations: z.array(z.string()).readonly(),
  /** Only known tables: the names become SQL, and a backup may have been in other hands. */
  rows: z.partialRecord(z.enum(KEPT_TABLES), z.int()),
});
export type DumpManifest = z.output<typeof manifestSchema>;

const fileOf = (folder: string, table: string) => join(folder, `${table.split('.')[1]}.copy`);

async function connected<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await openClient(url, 'doorplate dump');
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

/**
 * Copies the kept tables, as of one moment, to files in an empty folder. The manifest is written last, so a folder without
 * it holds an incomplete dump.
 * @throws DumpError if the database has no tables
 */
export const dumpTo = (url: string, folder: string): Promise<DumpManifest> =>
  connected(url, async (client) => {
    await client.query('begin isolation level repeatable read read only');
    const migrations = baselined(await ranMigrations(client));
    if (migrations.length === 0) throw new DumpError('the database has no tables: nothing to dump');
    const { rows: present } = await client.query<{ table: (typeof KEPT_TABLES)[number] }>(
      'select t as table from unnest($1::text[]) t where to_regclass(t) is not null',
      [KEPT_TABLES],
    );
    const rows: DumpManifest['rows'] = {};
    for (const { table } of present) {
      const copy = client.query(copyTo(`copy ${table} to stdout`));
      await pipeline(
        copy,
        createWriteStream(fileOf(folder, table), { flags: 'wx', mode: 0o600, flush: true }),
      );
      rows[table] = copy.rowCount;
    }
    await client.query('commit');
    const manifest = { migrations, rows };
    const text = `${JSON.stringify(manifest, null, 2)}\n`;
    writeFileSync(join(folder, MANIFEST), text, { flag: 'wx', mode: 0o600, flush: true });
    return manifest;
  });

/**
 * Fills an empty database from a dump: creates the dump's version of the tables, copies the rows in one transaction, and
 * runs newer migrations.
 * @throws DumpError if the dump is incomplete or the database is not empty
 */
export async function loadFrom(url: string, folder: string): Promise<DumpManifest> {
  const manifest = readManifest(folder);
  await connected(url, (client) => refuseUsed(client, manifest));
  await migrate(url, { only: manifest.migrations });
  await connected(url, (client) => fill(client, folder, manifest));
  await migrate(url);
  return manifest;
}

function readManifest(folder: string): DumpManifest {
  const file = join(folder, MANIFEST);
  try {
    return manifestSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    if (error instanceof z.ZodError)
      throw new DumpError(`${file} is not a dump's: ${z.prettifyError(error)}`);
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new DumpError(`${folder} holds no whole dump: it has no ${MANIFEST}`);
  }
}

/** Accepts tables without rows, so that an interrupted load can be repeated. */
async function refuseUsed(client: pg.Client, { migrations }: DumpManifest): Promise<void> {
  const ran = baselined(await ranMigrations(client));
  if (ran.length === 0) return;
  const { rowCount } = await client.query('select from eventlog.stream limit 1');
  if (rowCount !== 0) throw new DumpError('the database holds events already: load into an empty one');
  if (ran.join() !== baselined(migrations).join()) {
    throw new DumpError('the database has tables of another version already: load into an empty one');
  }
}

async function fill(client: pg.Client, folder: string, { rows }: DumpManifest): Promise<void> {
  await client.query('begin');
  await client.query(`truncate ${Object.keys(rows).join(', ')}`);
  for (const [table, expected] of Object.entries(rows)) {
    const copy = client.query(copyFrom(`copy ${table} from stdin`));
    await pipeline(createReadStream(fileOf(folder, table)), copy);
    if (copy.rowCount === expected) continue;
    throw new DumpError(`${fileOf(folder, table)} holds ${copy.rowCount} rows instead of ${expected}`);
  }
  await client.query(
    `select setval(pg_get_serial_sequence('eventlog.event', 'position'), max(position)) from eventlog.event`,
  );
  await client.query('commit');
  await client.query('analyze');
}
