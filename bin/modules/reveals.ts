import { requestForReveal } from '../../commands/lookup/request-for-reveal.ts';
import {
  completeReveal,
  createRevealSession,
  type RevealDeps,
} from '../../commands/reveals/reveal-session.ts';
import { accept } from '../../domain/kernel/decider.ts';
import type { Reveal } from '../../domain/reveals/reveal.ts';
import type { Route } from '../../http/route.ts';
import {
  type EnrichRevealsDeps,
  enrichReveals,
  retryRefusedReveals,
} from '../../processors/lookup/enrich-reveals.ts';
import { slotsForReveal } from '../../processors/webhooks/queue-slots.ts';
import { createRevealableSessions } from '../../queries/sessions/revealable-sessions.ts';
import type { Receipt } from '../../read-api/reveals/answer.ts';
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
    enterQueue: slotsForReveal(queue),
  };
  const reveal = createRevealSession(revealDeps);
  return [
    revealRoute({
      reveal: async (request, context) => {
        const revealed = await reveal(request, context);
        return revealed.ok ? accept(receiptOfState(revealed.value)) : revealed;
      },
      customOf: sessions.customOf,
      countCall,
    }),
    getRevealRoute({
      db,
      caughtUp,
      complete: async (revealId, context) => {
        const revealed = await completeReveal(revealDeps, revealId, context);
        return revealed && receiptOfState(revealed);
      },
      customOf: sessions.customOf,
      countCall,
    }),
  ];
};

const receiptOfState = ({ requested, completed }: Reveal): Receipt => {
  if (!requested) throw new TypeError('a reveal without a request has no receipt');
  return { ...requested, completed };
};

export const revealWork = (context: WorkerContext): WorkerModule => {
  const { runtime, capacity, sessions, notifications } = context;
  const { pool, clock, store, digest } = runtime;
  const enrichDeps: EnrichRevealsDeps = {
    pool,
    clock,
    digest,
    addressOf: sessions.addressOf,
    onAwaited: notifications.onAwaited,
    request: (ip, partnerId, context) =>
      requestForReveal({ store, digest, capacity }, ip, partnerId, context),
  };
  return {
    processors: { visits: [enrichReveals(enrichDeps), notifications.completing] },
    jobs: () => [['5-55/15 * * * * *', () => retryRefusedReveals(enrichDeps)], ...notifications.jobs],
  };
};
