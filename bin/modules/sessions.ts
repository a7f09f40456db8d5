import { createVisitCapture } from '../../commands/sessions/capture-visit.ts';
import { MINUTE } from '../../domain/kernel/time.ts';
import type { Route } from '../../http/contract/route.ts';
import { callerOfAddress, createVisitorAddress, networkOf } from '../../http/server/visitor.ts';
import { sharedNotes } from '../../platform/kept-out-exchange.ts';
import { VISITOR_RATES } from '../../platform/rate-limit.ts';
import { reserveForSession } from '../../processors/webhooks/queue-admission.ts';
import { sessionRoutes as readingRoutes } from '../../read-api/sessions/sessions.ts';
import { createCaptureRates } from '../../write-api/sessions/capture-rates.ts';
import { collectRoutes } from '../../write-api/sessions/collect.ts';
import type { ApiContext } from '../api-context.ts';

/**
 * Time limit of a read's wait for the read models. After it the feed returns what it has, and its cursor still misses nothing
 * later.
 */
export const CAUGHT_UP_LIMIT_MS = 1_000;

export const sessionRoutes = (context: ApiContext): Route[] => {
  const { runtime, limiter, metrics } = context;
  const { config, clock, pool, db, store, digest, dayKeys, cursors, queue, peers } = runtime;
  const { trackers, served, countries, calls, countCall, caughtUp } = context;
  const shared = {
    partners: sharedNotes(pool, 'captures', MINUTE),
    networks: sharedNotes(pool, 'captures of networks', MINUTE),
  };
  const admitCapture = createCaptureRates(config, limiter, clock, shared, () => 1 + peers.otherApis());
  const wideNetworkOf = (ip: string): string => digest(callerOfAddress(ip).network);
  return [
    ...collectRoutes({
      trackers,
      capture: createVisitCapture(store, dayKeys, reserveForSession(queue)),
      collectsOn: served.collectsOn,
      visitorAddress: createVisitorAddress(config.TRUSTED_PROXIES),
      countryOf: countries,
      // A digest, because rate names may be stored.
      admitVisitor: (ip) =>
        limiter.admit(`${VISITOR_RATES}${digest(networkOf(ip))}`, config.CAPTURES_PER_SECOND_PER_VISITOR),
      admitCapture: (tracker, ip) => admitCapture(tracker, wideNetworkOf(ip)),
      countCapture: calls.capture,
      onCapture: (outcome) => metrics?.captures.inc({ outcome }),
    }),
    ...readingRoutes({
      db,
      dayKeys,
      cursors,
      trackers,
      caughtUp: caughtUp(['sessions', 'reveals'], CAUGHT_UP_LIMIT_MS),
      countCall,
    }),
  ];
};
