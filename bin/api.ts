import type { FastifyInstance } from 'fastify';
import { createCallRates } from '../http/call-rates.ts';
import { collectionRoute } from '../http/collection.ts';
import { docsRoutes } from '../http/docs-page.ts';
import { healthRoute } from '../http/health.ts';
import { type Listeners, listenOnSeveral } from '../http/listeners.ts';
import { openApiDocument, openApiRoute } from '../http/openapi.ts';
import { buildServer } from '../http/server.ts';
import { createCallerAt, createCallerOf } from '../http/visitor.ts';
import type { Config } from '../platform/config.ts';
import type { Leases } from '../platform/leases.ts';
import type { Metrics } from '../platform/metrics.ts';
import { createRateLimiter } from '../platform/rate-limit.ts';
import { createKeyUses } from '../processors/partners/key-uses.ts';
import { createAuthenticate } from '../queries/partners/calling-keys.ts';
import { openApiContext } from './api-context.ts';
import { apiRoutes } from './api-routes.ts';
import { buildDashboard } from './dashboard.ts';
import type { Runtime } from './runtime.ts';

export interface Api {
  readonly app: FastifyInstance;
  /** @throws where the port is taken (`EADDRINUSE`) */
  listen(host: string, port: number): Promise<void>;
  close(): Promise<void>;
}

/** Builds the partners' API: routes, limits and counting. */
export const buildApi = async (
  runtime: Runtime,
  leases: Pick<Leases, 'alone'>,
  publicUrl: string,
  healthy: () => boolean,
  metrics?: Metrics,
): Promise<Api> => {
  const { config, log, clock, pool } = runtime;
  const limiter = createRateLimiter({ pool, clock, alone: leases.alone });
  const context = await openApiContext(runtime, limiter, publicUrl, metrics);
  const routes = [...apiRoutes(context), healthRoute(healthy)];
  const rates = createCallRates(limiter, config);
  const keyUses = createKeyUses(runtime);
  const document = openApiDocument(routes, { publicUrl });
  const dashboard = buildDashboard(context, { routes, admit: rates.admit });
  const app = buildServer({
    routes: [
      ...routes,
      openApiRoute(document),
      collectionRoute(document),
      ...docsRoutes(),
      ...dashboard.routes,
    ],
    authenticate: createAuthenticate(pool, clock),
    admit: (caller, route) => {
      if (caller.kind === 'key') keyUses.note(caller);
      return rates.admit(caller, route);
    },
    quotaOf: rates.quotaOf,
    isCustomDomain: context.served.isCustomDomain,
    isHttps: publicUrl.startsWith('https:'),
    connectionLimits: {
      inAll: config.MAX_CONNECTIONS,
      ...callerLimits(config),
      callerAt: createCallerAt(config.TRUSTED_PROXIES),
    },
    // A caller that waits for each response has at most one running request per connection.
    requestLimit: {
      ...callerLimits(config),
      callerOf: createCallerOf(config.TRUSTED_PROXIES),
    },
    clock,
    log,
    onAnswer: ({ method, path }, status, milliseconds) =>
      metrics?.answers.observe({ route: `${method} ${path}`, status }, milliseconds / 1_000),
  });
  return apiOf(app, [context.counter, context.calls, context.clues, keyUses, dashboard]);
};

/** `parts`: what requests need, which ends after them. */
const apiOf = (app: FastifyInstance, parts: readonly { close(): Promise<void> }[]): Api => {
  let listeners: Listeners | null = null;
  return {
    app,
    listen: async (host, port) => {
      listeners = await listenOnSeveral(app, host, port);
    },
    close: async () => {
      await Promise.all([app.close(), listeners?.close()]);
      for (const part of parts) await part.close();
    },
  };
};

/** Twenty addresses of one network would fill the process's connections; half of them are left to others. */
const callerLimits = ({ MAX_CONNECTIONS: inAll, MAX_CONNECTIONS_PER_ADDRESS: perAddress }: Config) => ({
  perAddress,
  perNetwork: Math.max(perAddress, Math.floor(inAll / 2)),
});
