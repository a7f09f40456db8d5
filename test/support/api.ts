/** The partners' API built as `bin/` builds it, with its own database and a manual clock. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify';
import type pg from 'pg';
import { buildApi } from '../../bin/api.ts';
import { openRuntime, type Runtime } from '../../bin/runtime.ts';
import { startWorkers, type Workers } from '../../bin/workers.ts';
import { type Key, makeKey } from '../../cli/installation/make-key.ts';
import type { KeyLimits } from '../../domain/partners/events.ts';
import type { EventStore } from '../../event-store/port.ts';
import type { Clock } from '../../platform/clock/clock.ts';
import { loadConfig } from '../../platform/config/config.ts';
import { enterLeases } from '../../platform/leases/leases.ts';
import { createLogger } from '../../platform/telemetry/log.ts';
import { createMetrics, type Metrics } from '../../platform/telemetry/metrics.ts';
import type { Provider } from '../../processors/lookup/providers/provider.ts';
import { allProjections } from '../../projections/all.ts';
import { type TestDatabase, testDatabase, testPool } from './database.ts';
import { MASTER_KEY } from './doorplate.ts';
import { eventually } from './eventually.ts';
import { type ManualClock, manualClock, NOON } from './manual-clock.ts';

export { type Key, type ManualClock, manualClock, NOON };

export interface ApiOptions {
  readonly clock?: Clock;
  readonly env?: Readonly<Record<string, string>>;
  readonly providers?: readonly Provider[];
  readonly aroundStore?: (store: EventStore) => EventStore;
  /** false: no projection, enrichment or settlement runs. */
  readonly workers?: boolean;
  /** Replaces the new database; it is dropped at the end all the same. */
  readonly database?: TestDatabase;
}

export interface TestApi {
  readonly app: FastifyInstance;
  readonly runtime: Runtime;
  readonly metrics: Metrics;
  /** Queries of the test, past the product. */
  readonly sql: pg.Pool;
  /** Creates a key of a new partner, or of `partner_id`. Its rate is high unless a limit is given. */
  key(limits?: Partial<KeyLimits>, partner_id?: string): Promise<Key>;
  inject(key: Key | null, options: InjectOptions): Promise<LightMyRequestResponse>;
  post(key: Key, ip: unknown): Promise<LightMyRequestResponse>;
  get(key: Key, ip: string): Promise<LightMyRequestResponse>;
  usage(key: Key, query?: string): Promise<LightMyRequestResponse>;
  /** Polls until the response is 200 with this refresh status (and, unless `not_needed`, within its time limit). */
  settled(key: Key, ip: string): Promise<LightMyRequestResponse>;
  /** Waits until the read models have applied the whole store: for queries of the test. */
  caughtUp(): Promise<void>;
  close(): Promise<void>;
}

const ROOMY = 10_000;
const IN_MEMORY = { alone: () => true };
const READY_MS = 10_000;
const PROJECTIONS = allProjections.map(({ name }) => name);

export const startApi = async (options: ApiOptions = {}): Promise<TestApi> => {
  const {
    clock = manualClock(),
    env = {},
    providers = [],
    aroundStore,
    workers: withWorkers = true,
  } = options;
  const database = options.database ?? (await testDatabase());
  const dataDir = mkdtempSync(join(tmpdir(), 'doorplate-api-'));
  const config = loadConfig({
    DATABASE_URL: database.url,
    DATA_DIR: dataDir,
    MASTER_KEY,
    LOG_LEVEL: 'silent',
    ...env,
  });
  const log = createLogger({ level: config.LOG_LEVEL, destination: 'stderr' });
  const substitutes = aroundStore === undefined ? { clock } : { clock, aroundStore };
  const runtime = await openRuntime(config, log, 'join', substitutes);
  const chain = { providers, longestMs: 5_000, close: async () => {} };
  const leases = withWorkers
    ? await enterLeases({ url: runtime.databaseUrl, role: 'command', clock, log })
    : null;
  if (leases) runtime.providers.configured = leases.providers;
  const metrics = createMetrics();
  const workers: Workers | null = leases
    ? await startWorkers(runtime, leases, metrics, async () => chain)
    : null;
  const api = await buildApi(
    runtime,
    IN_MEMORY,
    config.PUBLIC_URL ?? 'http://doorplate.test',
    () => true,
    metrics,
  );
  await api.app.ready();
  const sql = testPool(database, 2);

  const inject = (key: Key | null, { headers = {}, ...rest }: InjectOptions) =>
    api.app.inject({
      ...rest,
      headers: { ...(key === null ? {} : { authorization: `Bearer ${key.api_key}` }), ...headers },
    });
  const get = (key: Key, ip: string) =>
    inject(key, { method: 'GET', url: `/v1/lookup?ip=${encodeURIComponent(ip)}` });

  return {
    app: api.app,
    runtime,
    metrics,
    sql,
    key: (limits = {}, partner_id) =>
      makeKey(runtime, { requests_per_second: ROOMY, ...limits }, PROJECTIONS, partner_id),
    inject,
    post: (key, ip) => inject(key, { method: 'POST', url: '/v1/lookup', payload: { ip } }),
    get,
    usage: (key, query = '') =>
      inject(key, { method: 'GET', url: `/v1/usage${query === '' ? '' : `?${query}`}` }),
    settled: (key, ip) =>
      eventually(
        `the work on ${ip} has ended`,
        () => get(key, ip),
        (answer) => answer.statusCode === 200 && answer.json().refresh_status !== 'pending',
      ),
    caughtUp: async () => {
      const reached = await runtime.progress.reached(PROJECTIONS, await runtime.store.head(), READY_MS);
      if (!reached) throw new Error('the read models did not catch up');
    },
    close: async () => {
      await api.close();
      await workers?.close();
      await leases?.stop();
      await runtime.close();
      await sql.end();
      await database.drop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
};
