import { watchAhead } from '../platform/ahead.ts';
import { type Config, loadConfig } from '../platform/config.ts';
import { enterLeases } from '../platform/leases.ts';
import { createLogger, type Logger } from '../platform/log.ts';
import { createMetrics } from '../platform/metrics.ts';
import { startOpsServer } from '../platform/ops-server.ts';
import { createShutdown, type Shutdown } from '../platform/shutdown.ts';
import { startTracing } from '../platform/tracing.ts';
import { eventStoreProblem } from '../platform/unreachable.ts';
import { type Demo, ensureDemo } from '../processors/partners/demo.ts';
import { type Api, buildApi } from './api.ts';
import { serviceUrl, tlsAllowed } from './modules/domains.ts';
import { signalsIntake } from './modules/signals.ts';
import { openRuntime, type Runtime } from './runtime.ts';
import { watchState } from './state-metrics.ts';
import { startWorkers, type Workers } from './workers.ts';

export type Role = 'all' | 'api' | 'workers';

/** Runs `doorplate serve`: starts the parts of a role in order; a signal ends them in reverse. */
export const serve = async (role: Role, env: NodeJS.ProcessEnv): Promise<void> => {
  const config = loadConfig(env);
  const log = createLogger({ level: config.LOG_LEVEL, destination: 'stderr' });
  for (const name of config.unsafe) log.warn(`${name} is set: it is for development and tests alone`);
  const shutdown = createShutdown({ log });
  await shutdown.starting(startParts(role, config, log, shutdown));
};

const startParts = async (role: Role, config: Config, log: Logger, shutdown: Shutdown): Promise<void> => {
  shutdown.register('traces', await startTracing(config, log));
  const runtime = await openRuntime(config, log, 'own');
  shutdown.register('stores', runtime.close);
  const problem = await eventStoreProblem(config, runtime.store);
  if (problem !== null) log.error(`${problem.message}; the service keeps trying`);
  const { databaseUrl: url, clock } = runtime;
  const leases = await enterLeases({ url, role, clock, log });
  shutdown.register('leases', leases.stop);
  runtime.peers.present = leases.hasOthers;
  runtime.peers.otherApis = leases.otherApis;
  runtime.providers.configured = leases.providers;

  const metrics = createMetrics();
  watchState(runtime, leases, metrics);
  const endWatch = watchAhead(log, metrics.ahead);
  shutdown.register('watch on recorded times', async () => endWatch());
  const workers = role === 'api' ? null : await startWorkers(runtime, leases, metrics);
  if (workers) shutdown.register('workers', workers.close);

  let serving = false;
  const ops = await startOpsServer({
    host: config.OPS_HOST,
    hostNames: config.OPS_HOSTS,
    port: config.OPS_PORT,
    registry: metrics.registry,
    readiness: () => readiness(runtime, workers, serving || role === 'workers'),
    handlers: {
      'GET /tls-allowed': tlsAllowed(runtime),
      'POST /signals': signalsIntake(runtime, metrics),
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
  serving = true;
  shutdown.register('api', () => {
    serving = false;
    return api.close();
  });
  const without = problem === null ? '' : ', though the event store did not answer at the start';
  log.info({ role, url: publicUrl, ops_port: ops.port }, `listening${without}`);
  if (demo) greet(publicUrl, demo);
};

const isEveryAddress = (host: string): boolean => host === '0.0.0.0' || host === '::';

const listen = async (api: Api, host: string, port: number): Promise<void> => {
  try {
    await api.listen(host, port);
  } catch (error) {
    const taken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
    throw taken ? new Error(`PORT ${port} is in use on ${host}`) : error;
  }
};

const readiness = async ({ pool, store }: Runtime, workers: Workers | null, serving: boolean) => {
  const problems: string[] = [];
  await pool.query('select 1').catch((error: Error) => problems.push(`PostgreSQL: ${error.message}`));
  await store.head().catch((error: Error) => problems.push(`event store: ${error.message}`));
  for (const name of workers?.stopped() ?? []) problems.push(`${name} was stopped by an event`);
  if (!serving) problems.push('not serving');
  return { ready: problems.length === 0, problems };
};

/** Prints a first request for the demo. The only code that prints a key, and only once. */
const greet = (url: string, { file, newKey }: Demo): void => {
  const header =
    newKey === null ? '"Authorization: Bearer $DOORPLATE_API_KEY"' : `'Authorization: Bearer ${newKey}'`;
  process.stdout.write(`
Doorplate is listening on ${url} (documentation: ${url}/docs).
The demo partner's key is in ${file}${newKey === null ? ` (. ${file})` : ''}. Ask for a company, then poll:

  curl -sS -X POST ${url}/v1/lookup -H ${header} \\
    -H 'Content-Type: application/json' -d '{"ip":"8.8.8.8"}'
  curl -sS '${url}/v1/lookup?ip=8.8.8.8' -H ${header}

People find it all at ${url}/dashboard, with a login from: npx doorplate user create --partner demo NAME

`);
};
