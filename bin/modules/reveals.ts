import { requestForReveal } from '../../commands/lookup/request-for-reveal.ts';
import {
  completeReveal,
  createRevealSession,
  type RevealDeps,
} from '../../commands/reveals/reveal-session.ts';
import type { Route } from '../../http/route.ts';
import {
  type EnrichRevealsDeps,
  enrichReveals,
  retryRefusedReveals,
} from '../../processors/lookup/enrich-reveals.ts';
import { createRevealShare } from '../../processors/lookup/reveal-share.ts';
import { entryForReveal } from '../../processors/webhooks/queue-entries.ts';
import { createRevealableSessions } from '../../queries/sessions/revealable-sessions.ts';
import { getRevealRoute } from '../../read-api/reveals/get-reveal.ts';
import { revealRoute } from '../../write-api/reveals/reveal-session.ts';
import type { ApiContext } from '../api-context.ts';
import type { WorkerContext, WorkerModule } from '../worker-context.ts';
import { savedResults } from './saved-results.ts';
import { FEED_MS } from './sessions.ts';

export const revealRoutes = (context: ApiContext): Route[] => {
  const { runtime, limiter, trackerCommands, countCall } = context;
  const { config, clock, db, store, dayKeys, queue } = runtime;
  const caughtUp = context.caughtUp(['sessions', 'reveals'], FEED_MS);
  const sessions = createRevealableSessions({ db, dayKeys, clock, caughtUp });
  const revealDeps: RevealDeps = {
    store,
    findSession: sessions.find,
    trackerRefusal: trackerCommands.refusal,
    admit: async (partnerId) =>
      (await limiter.admit(`reveals of ${partnerId}`, config.REVEALS_PER_SECOND)) === null,
    savedResult: savedResults(runtime),
    enterQueue: entryForReveal(queue),
  };
  return [
    revealRoute({
      revealSession: createRevealSession(revealDeps),
      customOf: sessions.customOf,
      countCall,
    }),
    getRevealRoute({
      db,
      caughtUp,
      complete: (revealId, context) => completeReveal(revealDeps, revealId, context),
      customOf: sessions.customOf,
      countCall,
    }),
  ];
};

export const revealWork = (context: WorkerContext): WorkerModule => {
  const { runtime, capacity, sessions, notifications } = context;
  const { pool, clock, store, digest } = runtime;
  const intake = { store, digest, capacity, hasShare: createRevealShare(pool) };
  const enrichDeps: EnrichRevealsDeps = {
    pool,
    clock,
    digest,
    addressOf: sessions.addressOf,
    onAwaited: notifications.onAwaited,
    request: (ip, partnerId, context) => requestForReveal(intake, ip, partnerId, context),
  };
  return {
    processors: { visits: [enrichReveals(enrichDeps), notifications.completing] },
    jobs: () => [['5-55/15 * * * * *', () => retryRefusedReveals(enrichDeps)], ...notifications.jobs],
  };
};
