import type { Route } from '../../http/contract/route.ts';
import {
  closeTrackerDays,
  closeUsageStreams,
  expireUsageStreams,
} from '../../processors/usage/close-usage-streams.ts';
import { forgetUsageBefore } from '../../projections/usage/lookup-counts.ts';
import { getUsageRoute } from '../../read-api/usage/get-usage.ts';
import type { ApiContext } from '../api-context.ts';
import type { WorkerContext, WorkerModule } from '../worker-context.ts';

export const usageRoutes = ({ runtime, caughtUp }: ApiContext): Route[] => [
  getUsageRoute({ db: runtime.db, caughtUp: caughtUp(['usage', 'lookups', 'reveals', 'reveal-units']) }),
];

export const usageWork = ({ runtime, caughtUp }: WorkerContext): WorkerModule => {
  const { store, pool, clock } = runtime;
  const streams = { store, pool, clock };
  return {
    jobs: () => [
      ['*/10 * * * *', () => closeUsageStreams(streams)],
      ['*/10 * * * *', () => closeTrackerDays({ ...streams, caughtUp: caughtUp(['tracker-usage']) })],
      ['23 3 * * *', () => expireUsageStreams(streams, (before) => forgetUsageBefore(pool, before))],
    ],
  };
};
