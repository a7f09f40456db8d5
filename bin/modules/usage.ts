import type { Route } from '../../http/route.ts';
import { getUsageRoute } from '../../read-api/usage/get-usage.ts';
import type { ApiContext } from '../api-context.ts';

export const usageRoutes = ({ runtime, caughtUp }: ApiContext): Route[] => [
  getUsageRoute({ db: runtime.db, caughtUp: caughtUp(['usage', 'lookups', 'reveals', 'reveal-units']) }),
];
