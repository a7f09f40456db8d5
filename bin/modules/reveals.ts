import { requestForReveal, savedForReveal } from '../../commands/lookup/reveal-lookups.ts';
import {
  type CompletionPorts,
  completeReveal,
  createRevealSession,
  type RevealDeps,
} from '../../commands/reveals/reveal-session.ts';
import type { RevealResult } from '../../domain/reveals/events.ts';
import type { Route } from '../../http/contract/route.ts';
import {
  type EnrichRevealsDeps,
  enrichReveals,
  hasRoomForReveal,
  retryRefusedReveals,
} from '../../processors/lookup/enrich-reveals.ts';
import {
  type CompleteRevealsDeps,
  completeReveals,
  completeWaiting,
  createCompletionRuns,
} from '../../processors/reveals/complete-reveals.ts';
import { reserveForReveal } from '../../processors/webhooks/queue-admission.ts';
import { wasErased } from '../../queries/reveals/reveals.ts';
import { createRevealableSessions } from '../../queries/sessions/sessions.ts';
import { getRevealRoute } from '../../read-api/reveals/get-reveal.ts';
import { postRevealRoute } from '../../write-api/reveals/post-reveal.ts';
import type { ApiContext } from '../api-context.ts';
import type { Runtime } from '../runtime.ts';
import type { WorkerContext, WorkerModule } from '../worker-context.ts';
import { HEAD_LIMIT_MS } from './sessions.ts';

const useSavedResults =
  (runtime: Pick<Runtime, 'store' | 'digest' | 'lookupUses' | 'providers'>) =>
  async (ip: string, partnerId: string, at: number): Promise<RevealResult | null> => {
    const { configured } = runtime.providers;
    const saved = await savedForReveal({ ...runtime, configured }, ip, partnerId, at);
    if (saved !== null) runtime.lookupUses.note(ip);
    return saved;
  };

/** What the command that reveals a session needs. */
export const depsOfReveals = ({
  runtime,
  limiter,
  sessions,
  trackerCommands,
}: Pick<ApiContext, 'runtime' | 'limiter' | 'trackerCommands'> &
  Pick<WorkerContext, 'sessions'>): RevealDeps => ({
  ...completionPorts(runtime, sessions.find),
  trackerRefusal: trackerCommands.refusal,
  isErased: (partnerId, revealId) => wasErased(runtime.db, partnerId, revealId),
  admitRate: async (partnerId) =>
    (await limiter.admit(`reveals of ${partnerId}`, runtime.config.REVEALS_PER_SECOND)) === null,
});

export function revealRoutes(context: ApiContext): Route[] {
  const { runtime, limiter, trackerCommands, countCall } = context;
  const { clock, db, pool, dayKeys } = runtime;
  const waitForHead = context.waitForHead(['sessions', 'reveals'], HEAD_LIMIT_MS);
  const sessions = createRevealableSessions({ db, pool, dayKeys, clock, waitForHead });
  const revealDeps = depsOfReveals({ runtime, limiter, sessions, trackerCommands });
  return [
    postRevealRoute({
      revealSession: createRevealSession(revealDeps),
      customOf: sessions.customOf,
      countCall,
    }),
    getRevealRoute({
      db,
      waitForHead,
      complete: (revealId, context) => completeReveal(revealDeps, revealId, context),
      customOf: sessions.customOf,
      countCall,
    }),
  ];
}

/** Builds the enrichment that pending reveals need, and the completion of those that an endpoint subscribes to. */
export function revealWork(context: WorkerContext): WorkerModule {
  const { runtime, capacity, sessions } = context;
  const { pool, clock } = runtime;
  const ports = completionPorts(runtime, sessions.find);
  const completing: CompleteRevealsDeps = {
    ...runtime,
    applied: context.applied,
    complete: async (revealId, context) => {
      const reveal = await completeReveal(ports, revealId, context);
      return reveal === null || reveal.completed !== null;
    },
  };
  const runCompletions = createCompletionRuns(completing);
  const hasRoom = (partnerId: string) => hasRoomForReveal(pool, partnerId);
  const intake = { ...runtime, capacity, hasRoom };
  const enriching: EnrichRevealsDeps = {
    ...runtime,
    addressOf: sessions.addressOf,
    request: (ip, partnerId, context) => requestForReveal(intake, ip, partnerId, context),
    onAwaited: async (ip, reveal) => {
      const saved = await ports.useSavedResult(ip, ANY_PARTNER, clock.now());
      if (saved !== null) await completeWaiting(completing, reveal.reveal_id);
    },
  };
  return {
    processors: { visits: [enrichReveals(enriching), completeReveals(completing)] },
    jobs: () => [
      ['5-55/15 * * * * *', () => retryRefusedReveals(enriching)],
      ['*/5 * * * * *', runCompletions],
    ],
  };
}

/** Whether a result exists is the same for all partners. */
const ANY_PARTNER = '';

const completionPorts = (runtime: Runtime, findSession: CompletionPorts['findSession']): CompletionPorts => ({
  store: runtime.store,
  findSession,
  useSavedResult: useSavedResults(runtime),
  reserveQueue: reserveForReveal(runtime.queue),
});
