import { healthRoute } from '../http/health.ts';
import type { Route } from '../http/route.ts';
import { loadConfig } from '../platform/config.ts';
import type { ApiContext } from './api-context.ts';
import { apiRoutes } from './api-routes.ts';

/** Returns the API's routes for their descriptions alone, without a database: their handlers do not work. */
export const documentedRoutes = (): Route[] => {
  const config = loadConfig({});
  const runtime = new Proxy(
    { config },
    { get: (known, name) => (name === 'config' ? known.config : absent) },
  );
  const context = { publicUrl: 'http://localhost:3000', runtime };
  const routes = apiRoutes(
    new Proxy(context, {
      get: (known, name) => known[name as keyof typeof known] ?? absent,
    }) as unknown as ApiContext,
  );
  return [...routes, healthRoute(() => true)];
};

/** Stands for every resource: any property and any call of it gives itself. */
const absent: unknown = new Proxy(() => absent, { get: () => absent, apply: () => absent });
