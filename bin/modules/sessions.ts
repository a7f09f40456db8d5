import { createCaptureVisit } from '../../commands/sessions/capture-visit.ts';
import type { Route } from '../../http/contract/route.ts';
import { createVisitorAddress, networkOf } from '../../http/server/visitor.ts';
import { reserveForSession } from '../../processors/webhooks/queue-admission.ts';
import { sessionRoutes as readingRoutes } from '../../read-api/sessions/sessions.ts';
import { listTrackersRoute } from '../../read-api/trackers/list-trackers.ts';
import { pixelRoute } from '../../read-api/trackers/pixel.ts';
import { trackerUsageRoute } from '../../read-api/trackers/tracker-usage.ts';
import { collectRoutes, createCaptureRates } from '../../write-api/sessions/collect.ts';
import { trackerRoutes as changingRoutes } from '../../write-api/trackers/trackers.ts';
import type { ApiContext } from '../api-context.ts';

export const trackerRoutes = ({
  runtime: { db, evidence },
  publicUrl,
  trackers,
  trackerCommands,
  served,
  waitForHead,
  ownWrite,
}: ApiContext): Route[] => [
  listTrackersRoute(db, publicUrl),
  ...changingRoutes({
    commands: trackerCommands,
    publicUrl,
    projected: ownWrite(['trackers']),
    changed: trackers.forget,
  }),
  trackerUsageRoute({
    db,
    waitForHead: waitForHead(['trackers', 'tracker-usage', 'reveals', 'reveal-units']),
  }),
  pixelRoute(trackers, served.collectsOn, evidence),
];

/**
 * Time limit of a read's wait for the read models. After it the feed returns what it has, and its cursor still misses nothing
 * later.
 */
export const HEAD_LIMIT_MS = 1_000;

export function sessionRoutes(context: ApiContext): Route[] {
  const { runtime, limiter, metrics } = context;
  const { config, db, store, digest, dayKeys, cursors, evidence, queue } = runtime;
  const { trackers, served, countries, calls, countCall, waitForHead } = context;
  return [
    ...collectRoutes({
      trackers,
      capture: createCaptureVisit(store, dayKeys, reserveForSession(queue)),
      collectsOn: served.collectsOn,
      visitorAddress: createVisitorAddress(config.TRUSTED_PROXIES),
      countryOf: countries.countryOf,
      rates: createCaptureRates(config, limiter, (ip) => digest(networkOf(ip))),
      countCapture: calls.capture,
      onCapture: (counted) => metrics?.captures.inc(counted),
      evidence,
    }),
    ...readingRoutes({
      db,
      dayKeys,
      cursors,
      trackers,
      waitForHead: waitForHead(['sessions', 'reveals'], HEAD_LIMIT_MS),
      countCall,
    }),
  ];
}
