import { accept, type Result, refuse } from '../../domain/kernel/decider.ts';
import { type RevealEvent, type RevealResult, revealEvents } from '../../domain/reveals/events.ts';
import {
  EMPTY_RESULT,
  type Reveal,
  type RevealCommand,
  type RevealRefusal,
  revealDecider,
  revealStream,
} from '../../domain/reveals/reveal.ts';
import { type EventStore, OutcomeUnknown, StreamExpired } from '../../event-store/port.ts';
import { type Aggregate, type CommandContext, handle, load } from '../handle.ts';
import type { QueueReservation } from '../queue-reservation.ts';

const aggregate: Aggregate<Reveal | null, RevealCommand, RevealEvent, RevealRefusal> = {
  schemas: revealEvents,
  decider: revealDecider,
};

/** The immutable facts of a session that a reveal needs. */
export interface RevealableSession {
  readonly session_id: string;
  readonly tracker_id: string;
  readonly partner_id: string;
  readonly expires_at: string;
  /** The visitor's public address; null if it is not public. */
  readonly publicIp: string | null;
}

/** Records the use of an address's saved result, which is then kept longer, and returns it as the partner sees it; null: none. */
export type UseSavedResult = (ip: string, partnerId: string, at: number) => Promise<RevealResult | null>;

type KnownReveal = Awaited<ReturnType<typeof load<Reveal | null, RevealCommand, RevealEvent, RevealRefusal>>>;

export const loadReveal = (
  store: EventStore,
  revealId: string,
  options: { readonly includeExpired?: boolean } = {},
): Promise<KnownReveal> => load(store, aggregate, revealStream(revealId), undefined, options);

/** Returns the result that an address has for a partner; null: none yet. `at` in milliseconds. */
export const resultFor = (
  { useSavedResult }: { readonly useSavedResult: UseSavedResult },
  { publicIp, partner_id }: RevealableSession,
  at: number,
): Promise<RevealResult | null> =>
  publicIp === null ? Promise.resolve(EMPTY_RESULT) : useSavedResult(publicIp, partner_id, at);

/**
 * Handles a command on a loaded reveal, and confirms or releases its queue reservation.
 * @throws OutcomeUnknown when the event may be stored; the port's other errors when it is not
 */
export const appendReveal = async (
  store: EventStore,
  revealId: string,
  command: RevealCommand,
  context: CommandContext,
  known: KnownReveal,
  queueReservation: QueueReservation,
): Promise<Result<Reveal, RevealRefusal | 'reveal_expired'>> => {
  try {
    const handled = await handle(store, aggregate, revealStream(revealId), command, context, known);
    if (!handled.ok) {
      queueReservation.release();
      return handled;
    }
    queueReservation.confirm();
    if (handled.value.state === null) throw new TypeError('a command on an unknown reveal was accepted');
    return accept(handled.value.state);
  } catch (error) {
    // After an unknown outcome the room stays reserved until it times out, because the event may be stored.
    if (!(error instanceof OutcomeUnknown)) queueReservation.release();
    // The Idempotency-Key belongs to an expired reveal whose stream is deleted; its name cannot be reused.
    if (error instanceof StreamExpired) return refuse('reveal_expired');
    throw error;
  }
};
