import type { FastifyInstance } from 'fastify';
import type { Route } from '../http/contract/route.ts';
import { docsRoutes } from '../http/docs/docs-page.ts';
import { openApiDocument, openApiRoute } from '../http/docs/openapi.ts';
import { createCallRates } from '../http/server/call-rates.ts';
import { sayDemo } from '../http/server/demo-banner.ts';
import { healthRoute } from '../http/server/health.ts';
import { createMisfits } from '../http/server/misfits.ts';
import { createProbes, type SeenProbe } from '../http/server/probe.ts';
import { buildServer } from '../http/server/server.ts';
import { createIsTrusted, createVisitorAddress } from '../http/server/visitor.ts';
import { loadConfig } from '../platform/config/config.ts';
import type { Leases } from '../platform/leases/leases.ts';
import { createRateLimiter } from '../platform/limits/rate-limit.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import { createKeyUses } from '../processors/partners/key-uses.ts';
import { createAuthenticate } from '../queries/partners/partners.ts';
import { type ApiContext, openApiContext } from './api-context.ts';
import { buildDashboard } from './dashboard.ts';
import { billingRoutes } from './modules/billing.ts';
import { domainRoutes } from './modules/domains.ts';
import { lookupRoutes, usageRoutes } from './modules/lookup.ts';
import { revealRoutes } from './modules/reveals.ts';
import { sessionRoutes, trackerRoutes } from './modules/sessions.ts';
import { webhookRoutes } from './modules/webhooks.ts';
import type { Runtime } from './runtime.ts';

const apiRoutes = (context: ApiContext): Route[] => [
  ...lookupRoutes(context),
  ...usageRoutes(context),
  ...billingRoutes(context),
  ...trackerRoutes(context),
  ...domainRoutes(context),
  ...sessionRoutes(context),
  ...revealRoutes(context),
  ...webhookRoutes(context),
];

/** Returns the API's routes for their descriptions alone, without a database: their handlers do not work. */
export function documentedRoutes(): Route[] {
  const runtime = withAbsent({ config: loadConfig({}) });
  const context = withAbsent({ publicUrl: 'http://localhost:3000', runtime });
  return [...apiRoutes(context as unknown as ApiContext), healthRoute(() => true)];
}

const withAbsent = <T extends object>(known: T): T =>
  new Proxy(known, { get: (of, name) => Reflect.get(of, name) ?? absent });

/** Stands for every resource: any property and any call of it gives itself. */
const absent: unknown = new Proxy(() => absent, { get: () => absent, apply: () => absent });

export interface Api {
  readonly app: FastifyInstance;
  /** The last request of `doorplate doctor`. */
  readonly lastProbe: () => SeenProbe | null;
  /** @throws where the port is taken (`EADDRINUSE`) */
  listen(host: string, port: number): Promise<void>;
  close(): Promise<void>;
}

/** Builds the partners' API: routes, limits and counting. */
export async function buildApi(
  runtime: Runtime,
  leases: Pick<Leases, 'alone'>,
  publicUrl: string,
  healthy: () => boolean,
  metrics?: Metrics,
): Promise<Api> {
  const { config, log, clock, pool } = runtime;
  const limiter = createRateLimiter({ pool, clock, alone: leases.alone });
  const context = await openApiContext(runtime, limiter, publicUrl, metrics);
  const routes = [...apiRoutes(context), healthRoute(healthy)];
  const rates = createCallRates(limiter, config);
  const keyUses = createKeyUses(runtime);
  const document = openApiDocument(routes, { publicUrl });
  const isTrusted = createIsTrusted(config.TRUSTED_PROXIES);
  const probes = createProbes({
    isOwnHost: context.served.isOwn,
    isTrusted,
    clientOf: createVisitorAddress(config.TRUSTED_PROXIES),
  });
  const dashboard = buildDashboard(context, { routes, admit: rates.admit });
  const app = buildServer({
    routes: [...routes, openApiRoute(document), ...docsRoutes(), ...dashboard.routes],
    authenticate: createAuthenticate(pool, clock),
    admit: (caller, route) => {
      if (caller.kind === 'key') keyUses.note(caller);
      return rates.admit(caller, route);
    },
    quotaOf: rates.quotaOf,
    guard: {
      hosts: context.served,
      misfits: createMisfits({ publicUrl, isTrusted, log, now: clock.now }),
      probes,
    },
    isHttps: publicUrl.startsWith('https:'),
    maxConnections: config.MAX_CONNECTIONS,
    clock,
    log,
    onAnswer: ({ method, path }, status, milliseconds) =>
      metrics?.answers.observe({ route: `${method} ${path}`, status }, milliseconds / 1_000),
  });
  if (config.isDemo) sayDemo(app);
  return {
    app,
    lastProbe: probes.last,
    listen: async (host, port) => void (await app.listen({ host, port })),
    close: async () => {
      await app.close();
      // What requests need ends after them.
      for (const part of [
        context.counter,
        context.calls,
        context.clues,
        context.erasures,
        context.countries,
        keyUses,
        dashboard,
      ])
        await part.close();
    },
  };
}
