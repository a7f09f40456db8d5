import pTimeout from 'p-timeout';
import { Counter } from 'prom-client';
import { shellQuoted } from '../http/contract/shell-text.ts';
import { createConditionMetrics } from '../operations/condition-metrics.ts';
import { reportFutureTimes } from '../platform/clock/clock.ts';
import { type Config, loadConfig } from '../platform/config/config.ts';
import { enterLeases, type Leases } from '../platform/leases/leases.ts';
import { eventStoreProblem } from '../platform/postgres/unavailable.ts';
import { createLogger, type Logger } from '../platform/telemetry/log.ts';
import { createMetrics, type Metrics } from '../platform/telemetry/metrics.ts';
import { sendJson, startOpsServer } from '../platform/telemetry/ops-server.ts';
import { createShutdown, type Shutdown } from '../platform/telemetry/shutdown.ts';
import { useTracing } from '../platform/telemetry/spans.ts';
import { createStateMetrics, type StateOfThings } from '../platform/telemetry/state-metrics.ts';
import { type Demo, ensureDemo } from '../processors/partners/demo.ts';
import { readQueueFill } from '../projections/webhooks/deliveries/queue-readers.ts';
import { listPositions } from '../queries/consumers.ts';
import { type Api, buildApi } from './api.ts';
import { CONSUMERS, GROUP_NAMES } from './groups.ts';
import { serviceUrl, tlsAllowed } from './modules/domains.ts';
import { signalsIntake } from './modules/signals.ts';
import { openRuntime, type Runtime } from './runtime.ts';
import { startWorkers, type Workers } from './workers.ts';

/** Starts tracing if an exporter is configured. @returns the function that ends it */
async function startTracing(config: Config, log: Logger): Promise<() => Promise<void>> {
  const endpoint = config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? config.OTEL_EXPORTER_OTLP_ENDPOINT;
  if (endpoint === undefined || config.OTEL_SDK_DISABLED) return async () => undefined;
  const { startTelemetry } = await import('../platform/telemetry/telemetry.ts');
  const telemetry = startTelemetry(config, log);
  useTracing(telemetry);
  return async () => {
    await telemetry.close();
    useTracing(null);
  };
}

type MeasuredLeases = Pick<Leases, 'processId' | 'states'>;

/** Prometheus gives up after ten seconds and would then lose all metrics. */
const MEASURE_MS = 2_000;

/** Adds the metrics of the whole installation, the same in every process. */
export function watchState(
  runtime: Pick<Runtime, 'pool' | 'store' | 'config' | 'clock' | 'logStalls'>,
  leases: MeasuredLeases,
  { registry }: Pick<Metrics, 'registry'>,
): void {
  createStateMetrics(registry, () => measure(runtime, leases));
  const { pool, config, clock } = runtime;
  createConditionMetrics(registry, () => ({ pool, config, now: clock.now(), partnerId: null }));
  new Counter({
    name: 'doorplate_log_stalls_total',
    help: 'Reads of the event log that failed and were repeated.',
    registers: [registry],
    collect() {
      this.reset();
      this.inc(runtime.logStalls());
    },
  });
}

async function measure(
  { pool, store, config }: Pick<Runtime, 'pool' | 'store' | 'config'>,
  leases: MeasuredLeases,
): Promise<StateOfThings> {
  const [head, positions, fill] = await Promise.all([
    inTime(store.head()),
    inTime(listPositions(pool, CONSUMERS)),
    inTime(readQueueFill(pool, config.WEBHOOK_QUEUE_PER_PARTNER, config.WEBHOOK_PAYLOAD_BYTES_PER_PARTNER)),
  ]);
  return {
    postgresql: positions !== undefined && fill !== undefined,
    eventStore: head !== undefined,
    head: head ?? null,
    positions: positions ?? [],
    leads: leadsOf(leases),
    queueFill: fill ?? 0,
  };
}

/** Returns an empty list while heartbeats fail. */
function leadsOf(leases: MeasuredLeases): StateOfThings['leads'] {
  const known = leases.states();
  if (known === null) return [];
  return GROUP_NAMES.map((name) => {
    const holder = known.find((lease) => lease.name === name)?.processId ?? null;
    return { name, held: holder !== null, here: holder === leases.processId };
  });
}

/** Returns undefined after a failure or a time limit. */
const inTime = <T>(asked: Promise<T>): Promise<T | undefined> =>
  pTimeout(asked, { milliseconds: MEASURE_MS }).catch(() => undefined);

export type Role = 'all' | 'api' | 'workers';

/** Runs `doorplate serve`: starts the parts of a role in order; a signal ends them in reverse. */
export async function serve(role: Role, env: NodeJS.ProcessEnv): Promise<void> {
  const config = loadConfig(env);
  const log = createLogger({ level: config.LOG_LEVEL, destination: 'stderr' });
  for (const name of config.unsafe) log.warn(`${name} is set: it is for development and tests alone`);
  if (config.gone.length > 0) {
    log.warn(`set, but this version has no such setting (CHANGELOG.md): ${config.gone.join(', ')}`);
  }
  if (config.databaseVariables.length > 0) {
    log.info(`DATABASE_URL is completed from the environment: ${config.databaseVariables.join(', ')}`);
  }
  const shutdown = createShutdown({ log });
  await shutdown.starting(startParts(role, config, log, shutdown));
}

async function startParts(role: Role, config: Config, log: Logger, shutdown: Shutdown): Promise<void> {
  shutdown.register('traces', await startTracing(config, log));
  const runtime = await openRuntime(config, log, 'own');
  shutdown.register('stores', runtime.close);
  const problem = await eventStoreProblem(config, runtime.store);
  if (problem !== null) log.error(`${problem.message}; the service keeps trying`);
  const { databaseUrl: url, clock } = runtime;
  const leases = await enterLeases({ url, role, clock, log });
  shutdown.register('leases', leases.stop);
  runtime.otherProcesses.run = leases.hasOthers;
  runtime.providers.configured = leases.providers;

  const metrics = createMetrics();
  watchState(runtime, leases, metrics);
  const endWatch = reportFutureTimes(log, metrics.futureTimes);
  shutdown.register('watch on recorded times', async () => endWatch());
  const workers = role === 'api' ? null : await startWorkers(runtime, leases, metrics);
  if (workers) shutdown.register('workers', workers.close);

  // The installation's id is a digest under its own key: it tells two installations apart, and nothing else.
  const self = { installation: runtime.digest('installation'), process_id: leases.processId, role };
  let serving = false;
  let served: Api | null = null;
  const ops = await startOpsServer({
    host: config.OPS_HOST,
    hostNames: config.OPS_HOSTS,
    port: config.OPS_PORT,
    registry: metrics.registry,
    readiness: () => readiness(runtime, workers, serving || role === 'workers'),
    handlers: {
      'GET /tls-allowed': tlsAllowed(runtime),
      'POST /signals': signalsIntake(runtime, metrics),
      // By its id `doctor` finds the process in the registry of its own installation, or does not.
      'GET /process': (_request, response) => sendJson(response, 200, self),
      'GET /probe': (_request, response) => sendJson(response, 200, { last: served?.lastProbe() ?? null }),
    },
    log,
  });
  shutdown.register('operations listener', ops.close);

  if (role === 'workers') {
    log.info({ role, ops_port: ops.port }, 'working');
    return;
  }
  if (config.PUBLIC_URL === undefined && isEveryAddress(config.HOST)) {
    log.warn('PUBLIC_URL is not set: no browser reaches the pixel at an address like 0.0.0.0');
  }
  const publicUrl = serviceUrl(config);
  const api = await buildApi(runtime, leases, publicUrl, () => serving, metrics);
  const demo = role === 'all' ? await ensureDemo(runtime, publicUrl) : null;
  await listen(api, config.HOST, config.PORT);
  served = api;
  serving = true;
  shutdown.register('api', () => {
    serving = false;
    return api.close();
  });
  const without = problem === null ? '' : ', though the event store did not answer at the start';
  log.info({ role, url: publicUrl, ops_port: ops.port }, `listening${without}`);
  if (demo) greet(publicUrl, demo);
}

const isEveryAddress = (host: string): boolean => host === '0.0.0.0' || host === '::';

async function listen(api: Api, host: string, port: number): Promise<void> {
  try {
    await api.listen(host, port);
  } catch (error) {
    const taken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
    throw taken ? new Error(`PORT ${port} is in use on ${host}`) : error;
  }
}

async function readiness({ pool, store }: Runtime, workers: Workers | null, serving: boolean) {
  const problems: string[] = [];
  await pool.query('select 1').catch((error: Error) => problems.push(`PostgreSQL: ${error.message}`));
  await store.head().catch((error: Error) => problems.push(`event store: ${error.message}`));
  for (const name of workers?.stopped() ?? []) problems.push(`${name} was stopped by an event`);
  if (!serving) problems.push('not serving');
  return { ready: problems.length === 0, problems };
}

/** Prints a first request for the demo. The only code that prints a key, and only once. */
function greet(url: string, { file, newKey }: Demo): void {
  const header =
    newKey === null ? '"Authorization: Bearer $DOORPLATE_API_KEY"' : `'Authorization: Bearer ${newKey}'`;
  process.stdout.write(`
Doorplate is listening on ${url} (documentation: ${url}/docs).
The demo partner's key is in ${file}${newKey === null ? ` (. ${shellQuoted(file)})` : ''}. Ask for a company, then poll:

  curl -sS -X POST ${shellQuoted(`${url}/v1/lookup`)} -H ${header} \\
    -H 'Content-Type: application/json' -d '{"ip":"8.8.8.8"}'
  curl -sS ${shellQuoted(`${url}/v1/lookup?ip=8.8.8.8`)} -H ${header}

People find it all at ${url}/dashboard, with a login from: npx doorplate user create --partner demo NAME

`);
}
