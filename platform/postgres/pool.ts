import pg from 'pg';
import { endsWithin } from '../clock/waiting.ts';
import type { Logger } from '../telemetry/log.ts';

/**
 * Settings of every session of the service, which those of the server, the database and the role do not change. A name without a
 * schema is PostgreSQL's own: where others may create in `public`, as in each database that is older than PostgreSQL 15, a function
 * of theirs would run with the service's rights. The others are what values are as text: a day is one of UTC, in ISO 8601.
 */
const OWN = {
  search_path: 'pg_catalog',
  TimeZone: 'UTC',
  DateStyle: 'ISO,MDY',
  IntervalStyle: 'postgres',
  bytea_output: 'hex',
  extra_float_digits: '1',
  standard_conforming_strings: 'on',
  // Of no use but to show that settings arrive: the role or the database may have all others by chance.
  'doorplate.settings': 'own',
} as const;
const OWN_SETTINGS = Object.entries(OWN)
  .map(([name, value]) => `-c ${name}=${value}`)
  .join(' ');

/** A session does not have the settings that it asked for. The message is one line for the operator. */
export class NotDirect extends Error {}

export const NEEDS_DIRECT =
  'Doorplate needs a direct connection to PostgreSQL, and not one through a pooler such as PgBouncer';

/** @throws NotDirect if something between this process and PostgreSQL has dropped the settings of the session */
export async function requireSettings(session: pg.ClientBase | pg.Pool): Promise<void> {
  const { rows } = await session.query<{ name: keyof typeof OWN; value: string | null }>(
    'select name, current_setting(name, true) as value from unnest($1::text[]) as asked (name)',
    [Object.keys(OWN)],
  );
  const lost = rows.find(({ name, value }) => value?.replaceAll(' ', '') !== OWN[name]);
  if (lost === undefined) return;
  const { name, value } = lost;
  throw new NotDirect(`a session asked for ${name}=${OWN[name]} and has ${value ?? 'none'}: ${NEEDS_DIRECT}`);
}

/** Adds settings of a session to a URL, behind those that it has. pg would take the URL's alone, and not the client's. */
export function withSettings(url: string, settings: string): string {
  const dsn = new URL(url);
  dsn.searchParams.set('options', `${dsn.searchParams.get('options') ?? ''} ${settings}`.trim());
  return dsn.href;
}

/**
 * Settings of pools. A plan that was cached while a table was small must not scan it once it is large. A query takes one process of the
 * server, so that a limit of queries is one of processes. Before PostgreSQL 18 a scan that cannot be avoided has a cost for which it
 * would compile the query each time.
 */
export const POOLED = `${OWN_SETTINGS} -c enable_seqscan=off -c max_parallel_workers_per_gather=0 -c jit=off`;
/**
 * Time that a transaction may wait for its client's next statement: a frozen process must not keep its locks for longer than
 * others wait for theirs.
 */
export const IDLE_TRANSACTION = '3s';
/** Settings of sessions that are kept: one that the network has dropped without a word is noticed after some twenty seconds. */
const KEPT_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 } as const;
/** Later than the caller's own limit, so that the caller sees its own error. */
const CANCELLED_LATER_MS = 500;

/**
 * Part of a pool's connections that are kept while nothing uses them: connections that do not log in can take all that the server
 * has left, and a new one would be refused.
 */
const KEPT = 1 / 2;
/** Longer than most jobs rest: a login costs more than many of their statements. */
const IDLE_MS = 90_000;

/** Opens a connection pool of the service; a lost idle connection is logged, not thrown. `options`: settings of a session. */
export function openPool(
  url: string,
  log: Pick<Logger, 'warn'>,
  options: Pick<
    pg.PoolConfig,
    'max' | 'application_name' | 'options' | 'connectionTimeoutMillis' | 'query_timeout' | 'idleTimeoutMillis'
  >,
): pg.Pool {
  const { options: more = '', ...sizes } = options;
  const { query_timeout: limitMs } = sizes;
  const settings = [
    POOLED,
    `-c idle_in_transaction_session_timeout=${IDLE_TRANSACTION}`,
    // The server would run a statement that its caller no longer waits for to its end, beside those of the next callers.
    limitMs === undefined ? '' : `-c statement_timeout=${limitMs + CANCELLED_LATER_MS}`,
    more,
  ].join(' ');
  const pool = new pg.Pool({
    idleTimeoutMillis: IDLE_MS,
    ...sizes,
    ...KEPT_ALIVE,
    min: Math.ceil(KEPT * (sizes.max ?? 10)),
    connectionString: withSettings(url, settings),
  });
  // A lost connection rejects the statements of its transaction, and pg emits an error as well, which would end the process.
  pool.on('connect', (client) => client.on('error', () => undefined));
  pool.on('error', (error) => log.warn({ error: error.message }, 'lost a database connection'));
  return pool;
}

export interface ClientOptions
  extends Pick<pg.ClientConfig, 'types' | 'connectionTimeoutMillis' | 'query_timeout' | 'pipeline'> {
  /** Settings of the session beside those of all, as `-c name=value`. A later one of a name counts. */
  readonly settings?: string;
}

/** Makes a connection of its own, named in PostgreSQL. The caller connects it and handles its errors. */
export const createClient = (
  url: string,
  name: string,
  { settings = '', ...options }: ClientOptions = {},
): pg.Client =>
  new pg.Client({
    ...options,
    ...KEPT_ALIVE,
    connectionString: withSettings(url, `${OWN_SETTINGS} ${settings}`),
    application_name: name,
  });

/** Connects. `Client.connect` alone never settles once the client is ended meanwhile. @throws Error also then */
export async function connectClient(client: pg.Client): Promise<void> {
  const ended = new Promise<never>((_, reject) =>
    client.once('end', () => reject(new Error('the connection ended before it was made'))),
  );
  ended.catch(() => undefined);
  await Promise.race([client.connect(), ended]);
}

/** Opens a connection of its own, named in PostgreSQL. A lost one rejects its statements, and does not end the process. */
export async function openClient(url: string, name: string, options?: ClientOptions): Promise<pg.Client> {
  const client = createClient(url, name, options);
  client.on('error', () => undefined);
  await connectClient(client);
  return client;
}

/** A hanging server never answers the end of a connection. */
const END_MS = 1_000;

/** Ends a connection, and destroys its socket if the server does not answer in time. Never rejects. */
export async function endClient(client: pg.Client): Promise<void> {
  const ended = await endsWithin(client.end(), END_MS).catch(() => true);
  if (!ended) cutClient(client);
}

/** Destroys the socket of a connection. */
const cutClient = (client: pg.Client): void =>
  // Private in both packages' types.
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();

/** Ends a pool, waiting a limited time. Never rejects. */
export async function endPool(pool: { end(): Promise<unknown> }): Promise<void> {
  await endsWithin(pool.end(), END_MS).catch(() => undefined);
}
