import {
  completeReveal,
  createRevealSession,
  type RevealDeps,
} from '../../commands/reveals/reveal-session.ts';
import { createVisitCapture } from '../../commands/sessions/capture-visit.ts';
import { accept } from '../../domain/kernel/decider.ts';
import { MINUTE } from '../../domain/kernel/time.ts';
import type { Reveal } from '../../domain/reveals/reveal.ts';
import type { ServedHosts } from '../../http/own-host.ts';
import type { ApiRequest, Route } from '../../http/route.ts';
import { createVisitorAddress, networkOf } from '../../http/visitor.ts';
import { createCountries } from '../../platform/country.ts';
import { sharedNotes } from '../../platform/kept-out.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { type RateLimiter, VISITOR_RATES } from '../../platform/rate-limit.ts';
import { createRevealableSessions } from '../../queries/sessions/revealable-sessions.ts';
import type { TrackerDirectory } from '../../queries/trackers/directory.ts';
import type { Receipt } from '../../read-api/reveals/answer.ts';
import { getRevealRoute } from '../../read-api/reveals/get-reveal.ts';
import { sessionRoutes } from '../../read-api/sessions/sessions.ts';
import { revealRoute } from '../../write-api/reveals/reveal-session.ts';
import { collectRoutes } from '../../write-api/sessions/collect.ts';
import type { Runtime } from '../runtime.ts';
import { createCaptureRates } from './capture-rates.ts';
import { slotsForReveal, slotsForSession } from './queue-slots.ts';
import { savedResults } from './saved-results.ts';

export interface TrackingDeps {
  readonly runtime: Runtime;
  readonly limiter: RateLimiter;
  readonly trackers: TrackerDirectory;
  readonly trackerRefusal: RevealDeps['trackerRefusal'];
  readonly collectsOn: ServedHosts['collectsOn'];
  /** Waits for the read models of sessions and reveals, with the time limit of a page. */
  readonly caughtUp: () => Promise<boolean>;
  readonly countCapture: (trackerId: string) => Promise<void>;
  readonly countCall: (
    request: ApiRequest,
    trackerId: string,
    call?: { readonly completed: boolean; readonly company: boolean },
  ) => Promise<void>;
  readonly metrics: Metrics | undefined;
}

/** Builds the routes of the pixel, and those with which partners read sessions and reveals. */
export const buildTracking = async ({ runtime, limiter, ...parts }: TrackingDeps): Promise<Route[]> => {
  const { config, clock, pool, db, store, digest, dayKeys, cursors, queue } = runtime;
  const { trackers, collectsOn, caughtUp, countCapture, countCall, metrics } = parts;
  const sessions = createRevealableSessions({ db, dayKeys, clock, caughtUp });
  const revealing: RevealDeps = {
    store,
    findSession: sessions.find,
    trackerRefusal: parts.trackerRefusal,
    admit: async (partnerId) =>
      (await limiter.admit(`reveals of ${partnerId}`, config.REVEALS_PER_SECOND)) === null,
    savedResult: savedResults(runtime),
    enterQueue: slotsForReveal(queue),
  };
  const reveal = createRevealSession(revealing);
  return [
    ...collectRoutes({
      trackers,
      capture: createVisitCapture(store, dayKeys, slotsForSession(queue)),
      collectsOn,
      visitorAddress: createVisitorAddress(config.TRUSTED_PROXIES),
      countryOf: await createCountries(config.COUNTRY_MMDB),
      // A digest, because rate names may be stored.
      admitVisitor: (ip) =>
        limiter.admit(`${VISITOR_RATES}${digest(networkOf(ip))}`, config.CAPTURES_PER_SECOND_PER_VISITOR),
      admitCapture: createCaptureRates(config, limiter, clock, sharedNotes(pool, 'captures', MINUTE)),
      countCapture,
      onCapture: (outcome) => metrics?.captures.inc({ outcome }),
    }),
    ...sessionRoutes({ db, dayKeys, cursors, trackers, caughtUp, countCall }),
    revealRoute({
      reveal: async (request, context) => {
        const revealed = await reveal(request, context);
        return revealed.ok ? accept(receiptOf(revealed.value)) : revealed;
      },
      customOf: sessions.customOf,
      countCall,
    }),
    getRevealRoute({
      db,
      caughtUp,
      complete: async (revealId, context) => {
        const revealed = await completeReveal(revealing, revealId, context);
        return revealed && receiptOf(revealed);
      },
      customOf: sessions.customOf,
      countCall,
    }),
  ];
};

const receiptOf = ({ requested, completed }: Reveal): Receipt => {
  if (!requested) throw new TypeError('a reveal without a request has no receipt');
  return { ...requested, completed };
};
