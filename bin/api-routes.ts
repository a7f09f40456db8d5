import type { Route } from '../http/contract/route.ts';
import { healthRoute } from '../http/server/health.ts';
import { loadConfig } from '../platform/config.ts';
import type { ApiContext } from './api-context.ts';
import { domainRoutes } from './modules/domains.ts';
import { lookupRoutes } from './modules/lookup.ts';
import { revealRoutes } from './modules/reveals.ts';
import { sessionRoutes } from './modules/sessions.ts';
import { trackerRoutes } from './modules/trackers.ts';
import { usageRoutes } from './modules/usage.ts';
import { webhookRoutes } from './modules/webhooks.ts';

/** Returns the documented routes of every context. */
export const apiRoutes = (context: ApiContext): Route[] => [
  ...lookupRoutes(context),
  ...usageRoutes(context),
  ...trackerRoutes(context),
  ...domainRoutes(context),
  ...sessionRoutes(context),
  ...revealRoutes(context),
  ...webhookRoutes(context),
];

/** Returns the API's routes for their descriptions alone, without a database: their handlers do not work. */
export const documentedRoutes = (): Route[] => {
  const runtime = withAbsent({ config: loadConfig({}) });
  const context = withAbsent({ publicUrl: 'http://localhost:3000', runtime });
  return [...apiRoutes(context as unknown as ApiContext), healthRoute(() => true)];
};

const withAbsent = <T extends object>(known: T): T =>
  new Proxy(known, { get: (of, name) => Reflect.get(of, name) ?? absent });

/** Stands for every resource: any property and any call of it gives itself. */
const absent: unknown = new Proxy(() => absent, { get: () => absent, apply: () => absent });
