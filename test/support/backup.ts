/** The backup steps of `docs/backup-and-upgrade.md`, read from its text, so that a test runs what an operator would run. */
import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';

const PAGE = readFileSync(new URL('../../docs/backup-and-upgrade.md', import.meta.url), 'utf8');

/** The tables (`schema.name`) that a table of the page names in its first column. */
const tablesUnder = (heading: string): string[] => {
  const from = PAGE.indexOf(`| ${heading} |`);
  if (from < 0) throw new Error(`docs/backup-and-upgrade.md has no table "${heading}"`);
  const rows = PAGE.slice(from).split('\n\n')[0]?.split('\n').slice(2) ?? [];
  return rows.flatMap((row) =>
    [...(row.split('|')[1] ?? '').matchAll(/`(\w+\.\w+)`/g)].map(([, table]) => table as string),
  );
};

export const KEPT = tablesUnder('not rebuilt: in every backup');
export const MADE_AGAIN = tablesUnder('lost with a database, and made again');

/** The page's psql scripts that copy in a direction: the lines between `<<'END'` and `END`. */
const scriptThat = (copies: 'to' | 'from'): string[] => {
  const scripts = [...PAGE.matchAll(/<<'END'\n(.*?)\nEND\n/gs)].map(([, script]) => script as string);
  const found = scripts.find((script) => new RegExp(`^\\\\copy \\S+ ${copies} '`, 'm').test(script));
  if (found === undefined)
    throw new Error(`docs/backup-and-upgrade.md has no script that copies ${copies} files`);
  return found.split('\n');
};

const COPY = /^\\copy (\S+) (?:to|from) '(\S+)'$/;

/** File contents by file name. */
export type Files = Map<string, Buffer>;

const run = async (
  url: string,
  script: readonly string[],
  copy: (client: pg.Client, table: string, file: string) => Promise<void>,
): Promise<void> => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const line of script) {
      const [, table, file] = COPY.exec(line) ?? [];
      if (table === undefined || file === undefined) await client.query(line);
      else await copy(client, table, file);
    }
  } finally {
    await client.end();
  }
};

/** Copies the page's data out of a database, line by line. */
export const backUp = async (url: string): Promise<Files> => {
  const files: Files = new Map();
  await run(url, scriptThat('to'), async (client, table, file) => {
    files.set(file, await buffer(client.query(copyTo(`copy ${table} to stdout`))));
  });
  return files;
};

/** Copies the data into another database. */
export const restore = (url: string, files: Files): Promise<void> =>
  run(url, scriptThat('from'), async (client, table, file) => {
    const text = files.get(file);
    if (text === undefined) throw new Error(`the backup has no ${file}`);
    await pipeline(Readable.from([text]), client.query(copyFrom(`copy ${table} from stdin`)));
  });
