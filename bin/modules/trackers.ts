import type { Route } from '../../http/contract/route.ts';
import { listTrackersRoute } from '../../read-api/trackers/list-trackers.ts';
import { pixelRoute } from '../../read-api/trackers/pixel.ts';
import { trackerUsageRoute } from '../../read-api/trackers/tracker-usage.ts';
import { trackerRoutes as changingRoutes } from '../../write-api/trackers/trackers.ts';
import type { ApiContext } from '../api-context.ts';

export const trackerRoutes = ({
  runtime: { db },
  publicUrl,
  trackers,
  trackerCommands,
  served,
  caughtUp,
  ownWrite,
}: ApiContext): Route[] => [
  listTrackersRoute(db, publicUrl),
  ...changingRoutes({
    commands: trackerCommands,
    publicUrl,
    projected: ownWrite(['trackers']),
    changed: trackers.forget,
  }),
  trackerUsageRoute({ db, caughtUp: caughtUp(['trackers', 'tracker-usage', 'reveals', 'reveal-units']) }),
  pixelRoute(trackers, served.collectsOn),
];
