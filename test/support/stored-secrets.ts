/** All that a reader of every table and event finds who has all keys that are left. */
import type pg from 'pg';
import type { Runtime } from '../../bin/runtime.ts';
import { tryToOpen } from '../../platform/crypto/keyring.ts';

/** Every row of the tables and every event that the store's log still gives, as texts. */
async function everything({ store }: Runtime, sql: pg.Pool): Promise<string[]> {
  const { rows: tables } = await sql.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
     where schemaname in ('read', 'work', 'eventlog') order by 1`,
  );
  const texts: string[] = [];
  for (const { name } of tables) {
    const { rows } = await sql.query<{ row: object }>(`select to_json(t) as row from ${name} t`);
    texts.push(...rows.map(({ row }) => `${name} ${JSON.stringify(row)}`));
  }
  const head = await store.head();
  const done = new AbortController();
  for await (const { events, position } of store.follow({
    after: null,
    includeExpired: true,
    signal: done.signal,
  })) {
    texts.push(
      ...events.map(({ stream, type, data }) => `event ${stream} ${JSON.stringify({ stream, type, data })}`),
    );
    if (head === null || position >= head) done.abort();
  }
  return texts;
}

interface Named {
  readonly sealed?: unknown;
  readonly session_id?: string;
  readonly event_id?: string;
  readonly domain?: string;
  readonly data?: Named;
}

/** What sealed fields are bound to. */
const NAMES = ['session_id', 'event_id', 'domain'] as const;

const sealedIn = (value: unknown): Named[] =>
  value === null || typeof value !== 'object'
    ? []
    : [...('sealed' in value ? [value as Named] : []), ...Object.values(value).flatMap(sealedIn)];

const bytesOf = (sealed: unknown): Buffer[] =>
  typeof sealed === 'string'
    ? [Buffer.from(sealed, 'base64'), Buffer.from(sealed.replace(/^\\x/, ''), 'hex')]
    : [];

/** Finds rows and events that show one of the words, plain, sealed under a day's key, or as a digest of one of them. */
export async function findWords(
  runtime: Runtime,
  sql: pg.Pool,
  words: readonly string[],
  texts: readonly string[] = [],
): Promise<string[]> {
  const { rows: keys } = await sql.query<{ day: string }>(
    `select substr(name, 5) as day from work.keyring where name ^@ 'day '`,
  );
  const days = await Promise.all(keys.map(({ day }) => runtime.dayKeys.of(day)));
  const digests = days.flatMap((key) => (key === null ? [] : texts.map((text) => key.digest(text))));
  const wanted = [...words, ...digests];
  const found: string[] = [];
  for (const text of await everything(runtime, sql)) {
    const opened = sealedIn(JSON.parse(text.slice(text.indexOf('{')))).flatMap((one) =>
      bytesOf(one.sealed).flatMap((sealed) =>
        days.flatMap((key) =>
          NAMES.flatMap((name) => {
            const about = one[name];
            const plain = key && about !== undefined ? tryToOpen(key, sealed, about) : null;
            return plain === null ? [] : [plain.toString()];
          }),
        ),
      ),
    );
    if ([text, ...opened].some((one) => wanted.some((word) => one.includes(word)))) found.push(text);
  }
  return found;
}

/** The read models' tables, each as its rows, without checkpoints. */
export async function readTables(sql: pg.Pool): Promise<Readonly<Record<string, string[]>>> {
  const { rows: tables } = await sql.query<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = 'read' and tablename <> 'projection' order by 1`,
  );
  const all: Record<string, string[]> = {};
  for (const { name } of tables) {
    const { rows } = await sql.query<{ text: string }>(
      `select to_jsonb(t)::text as text from read.${name} t order by 1`,
    );
    all[name] = rows.map(({ text }) => text);
  }
  return all;
}
