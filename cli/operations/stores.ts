/** The stores as `status` and `doctor` see them: opened without migrations, each question with a time limit. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type pg from 'pg';
import { Agent, request } from 'undici';
import { noDataIn, refuseEmptyFolder } from '../../bin/runtime.ts';
import type { EventStore } from '../../event-store/port.ts';
import { createPostgresEventStore } from '../../event-store/postgres/store.ts';
import type { StoreState } from '../../operations/facts.ts';
import { within } from '../../platform/clock/waiting.ts';
import type { Config } from '../../platform/config/config.ts';
import { startEmbeddedPostgres } from '../../platform/embedded/embedded-postgres.ts';
import { endPool, openPool, requireSettings } from '../../platform/postgres/pool.ts';
import { addressOf, eventStoreProblem, Unreachable } from '../../platform/postgres/unavailable.ts';
import { createLogger } from '../../platform/telemetry/log.ts';

const ANSWER_MS = 2_000;

export interface OpenStores {
  readonly url: string;
  readonly pool: pg.Pool;
  readonly store: EventStore;
  close(): Promise<void>;
}

/**
 * Opens the configured stores, or the embedded ones beside a server or alone; makes no database and no table.
 * @throws NothingThere; EmbeddedPostgresError
 */
export async function openStores(config: Config): Promise<OpenStores> {
  const log = createLogger({ level: process.env.LOG_LEVEL ?? 'error', destination: 'stderr' });
  const dataDir = resolve(config.DATA_DIR);
  refuseEmptyFolder(config, dataDir);
  const embedded = config.DATABASE_URL ? null : await startEmbeddedPostgres({ dataDir, log, mode: 'join' });
  const url = config.DATABASE_URL ?? (embedded?.url as string);
  const pool = openPool(url, log, {
    max: 4,
    application_name: 'doorplate status',
    connectionTimeoutMillis: ANSWER_MS,
    query_timeout: ANSWER_MS,
  });
  const { now } = Date;
  const store = config.EVENTSTORE_URL
    ? (await import('../../event-store/eventstoredb/store.ts')).createEventStoreDb({
        url: config.EVENTSTORE_URL,
        now,
      })
    : createPostgresEventStore({ url, now });
  return {
    url,
    pool,
    store,
    close: async () => {
      await store.close();
      await endPool(pool);
      await embedded?.stop();
    },
  };
}

/** @throws NothingThere if the database answers and has no tables of the service */
export async function refuseEmptyDatabase({ pool, url }: OpenStores): Promise<void> {
  const { rows } = await pool
    .query<{ made: boolean }>(`select to_regclass('work.process') is not null as made`)
    .catch(() => ({ rows: [{ made: true }] }));
  if (rows[0]?.made) return;
  throw noDataIn(`DATABASE_URL (${addressOf(url)})`);
}

/** Ends of support of the vendors' release schedules: PostgreSQL by major version, EventStoreDB by release. */
const SUPPORTED_UNTIL: Readonly<Record<StoreState['kind'], Readonly<Record<string, string>>>> = {
  postgresql: {
    14: '2026-11-12',
    15: '2027-11-11',
    16: '2028-11-09',
    17: '2029-11-08',
    18: '2030-11-14',
  },
  eventstoredb: { '23.10': '2025-10-31', '24.10': '2026-10-31', '26.0': '2028-01-31' },
};

export async function readStores(config: Config, { pool, store, url }: OpenStores): Promise<StoreState[]> {
  const postgres = readPostgres(config, pool, url);
  if (config.EVENTSTORE_URL === undefined) return [await postgres];
  return await Promise.all([
    postgres,
    readEventStoreDb({ ...config, EVENTSTORE_URL: config.EVENTSTORE_URL }, store),
  ]);
}

async function readPostgres(config: Config, pool: pg.Pool, url: string): Promise<StoreState> {
  try {
    // Opens the connection, so that the latency is that of a query alone.
    await requireSettings(pool);
    const began = performance.now();
    const { rows } = await pool.query<{ version: string; read_only: boolean }>(
      `select current_setting('server_version') as version, current_setting('transaction_read_only') = 'on' as read_only`,
    );
    const version = rows[0]?.version.split(' ', 1)[0] ?? '';
    return {
      kind: 'postgresql',
      version,
      latency_ms: msSince(began),
      supported_until: SUPPORTED_UNTIL.postgresql[version.split('.', 1)[0] ?? ''] ?? null,
      error: null,
      read_only: rows[0]?.read_only ?? false,
    };
  } catch (error) {
    const variable = config.DATABASE_URL ? 'DATABASE_URL' : 'DATA_DIR';
    return awayStore('postgresql', new Unreachable(variable, url, error).message);
  }
}

async function readEventStoreDb(
  config: Config & { readonly EVENTSTORE_URL: string },
  store: EventStore,
): Promise<StoreState> {
  const began = performance.now();
  const problem = await eventStoreProblem(config, {
    head: () => within(store.head(), ANSWER_MS, () => new Error('no answer within 2 s')),
  });
  if (problem !== null) return awayStore('eventstoredb', problem.message);
  const latency_ms = msSince(began);
  const info = await readNode(config.EVENTSTORE_URL);
  const release = /^\d+\.\d+/.exec(info.version ?? '')?.[0] ?? '';
  return {
    kind: 'eventstoredb',
    version: info.version,
    latency_ms,
    supported_until: SUPPORTED_UNTIL.eventstoredb[release] ?? null,
    error: null,
    read_only: info.state === 'readonlyreplica',
  };
}

/** Makes the state of a store that cannot be used. `error`: why. */
export const awayStore = (kind: StoreState['kind'], error: string): StoreState => ({
  kind,
  version: null,
  latency_ms: null,
  supported_until: null,
  error,
  read_only: false,
});

interface Node {
  readonly version: string | null;
  readonly state: string | null;
}

/** Asks the first node for its version and state, over HTTP on the same port. Both are null if it does not answer. */
async function readNode(url: string): Promise<Node> {
  const parameters = new URLSearchParams(url.split('?', 2)[1]?.toLowerCase() ?? '');
  const [host = ''] = addressOf(url)
    .replace(/^[a-z+]+:\/\//, '')
    .split(/[,/]/, 1);
  const scheme = parameters.get('tls') === 'false' ? 'http' : 'https';
  const caFile = /[?&]tlsCAFile=([^&]+)/i.exec(url)?.[1];
  const ca = caFile === undefined ? {} : { ca: readFileSync(decodeURIComponent(caFile)) };
  const dispatcher = new Agent({ connect: { timeout: ANSWER_MS, ...ca }, headersTimeout: ANSWER_MS });
  try {
    const { body } = await request(`${scheme}://${host}/info`, { dispatcher });
    const {
      dbVersion = null,
      esVersion = null,
      state = null,
    } = (await body.json()) as Record<string, string | null>;
    return { version: dbVersion ?? esVersion, state: state?.toLowerCase() ?? null };
  } catch {
    return { version: null, state: null };
  } finally {
    await dispatcher.close();
  }
}

const msSince = (began: number): number => Math.round((performance.now() - began) * 10) / 10;
