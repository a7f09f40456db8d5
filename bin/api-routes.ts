import type { Route } from '../http/route.ts';
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
