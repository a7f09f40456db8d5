import type { Reveal } from '../../domain/reveals/reveal.ts';
import type { CommandContext } from '../handle.ts';
import { appendReveal, loadReveal, resultFor } from './append-reveal.ts';
import type { RevealDeps } from './reveal-session.ts';

/** What a completion needs, in a request and in a worker. */
export type CompletionPorts = Pick<RevealDeps, 'store' | 'findSession' | 'useSavedResult' | 'reserveQueue'>;

/**
 * Completes a pending reveal if its result exists. Idempotent.
 * @returns null if the reveal is gone
 * @throws what `appendReveal` throws
 */
export const completeReveal = async (
  deps: CompletionPorts,
  revealId: string,
  context: CommandContext,
): Promise<Reveal | null> => {
  const known = await loadReveal(deps.store, revealId);
  const reveal = known.state;
  if (!reveal || reveal.completed) return reveal;
  const session = await deps.findSession(reveal.partner_id, reveal.session_id);
  if (typeof session === 'string') return null;
  const result = await resultFor(deps, session, context.at);
  const queueReservation = result && (await deps.reserveQueue(reveal));
  if (result === null || queueReservation === null) return reveal;
  const command = { type: 'Complete', result, at: context.at } as const;
  const expiring = { ...context, expiresAt: session.expires_at };
  const done = await appendReveal(deps.store, revealId, command, expiring, known, queueReservation);
  return done.ok ? done.value : null;
};
