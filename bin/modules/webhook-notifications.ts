import { completeReveal } from '../../commands/reveals/reveal-session.ts';
import type { Position } from '../../event-store/port.ts';
import type { Job } from '../../platform/periodically.ts';
import type { FollowingProcessor } from '../../processors/follow.ts';
import {
  type CompleteRevealsDeps,
  completeReveals,
  completeRevealsOf,
  createCompletionRuns,
} from '../../processors/reveals/complete-reveals.ts';
import { entryForReveal } from '../../processors/webhooks/queue-entries.ts';
import { queueWebhookEvents } from '../../processors/webhooks/queue-events.ts';
import type { createRevealableSessions } from '../../queries/sessions/revealable-sessions.ts';
import { openSecrets } from '../../queries/sessions/sessions.ts';
import type { Runtime } from '../runtime.ts';
import { savedResults } from './saved-results.ts';

export type RevealableSessions = ReturnType<typeof createRevealableSessions>;

export interface WebhookNotifications {
  /** Called when a reveal waits for an address, whose result may have arrived before. */
  readonly onAwaited: (ip: string, digest: string) => Promise<void>;
  readonly jobs: readonly Job[];
  readonly queueing: FollowingProcessor;
  readonly completing: FollowingProcessor;
}

const APPLIED_MS = 4_000;

/** Builds the queueing of webhook events and the completion of pending reveals that an endpoint subscribes to. */
export const buildWebhookNotifications = (
  runtime: Runtime,
  sessions: RevealableSessions,
): WebhookNotifications => {
  const { store, pool, clock, dayKeys, progress, queue } = runtime;
  const applied = (names: readonly string[], position: Position): Promise<boolean> =>
    progress.reached(names, position, APPLIED_MS);
  const queueing = queueWebhookEvents({
    store,
    pool,
    clock,
    dayKeys,
    applied,
    labelsOf: async (rows) => (await openSecrets(rows, dayKeys)).map((secrets) => secrets?.custom ?? null),
  });
  const revealDeps = {
    store,
    findSession: sessions.find,
    savedResult: savedResults(runtime),
    enterQueue: entryForReveal(queue),
  };
  const completing: CompleteRevealsDeps = {
    pool,
    clock,
    applied,
    complete: async (revealId, context) =>
      (await completeReveal(revealDeps, revealId, context))?.completed !== null,
  };
  return {
    onAwaited: async (ip, digestOfIp) => {
      // Without a partner, because the existence of a result is the same for all partners.
      const saved = await revealDeps.savedResult(ip, '', clock.now());
      if (saved !== null) await completeRevealsOf(completing, digestOfIp);
    },
    jobs: [['*/5 * * * * *', createCompletionRuns(completing)]],
    queueing,
    completing: completeReveals(completing),
  };
};
