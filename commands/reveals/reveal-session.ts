import { v5 as uuidv5 } from 'uuid';
import { accept, type Result, refuse } from '../../domain/kernel/decider.ts';
import type { Reveal, RevealCommand, RevealRefusal } from '../../domain/reveals/reveal.ts';
import type { EventStore } from '../../event-store/port.ts';
import type { CommandContext } from '../handle.ts';
import { createLinger, LINGER } from '../linger.ts';
import type { QueueReservation } from '../queue-reservation.ts';
import {
  appendReveal,
  loadReveal,
  type RevealableSession,
  resultFor,
  type SavedResultOf,
} from './append-reveal.ts';

export type NotRevealed =
  | RevealRefusal
  | 'session_not_found'
  | 'session_expired'
  | 'reveal_expired'
  | 'tracker_disabled'
  | 'tracker_deleted'
  | 'tracking_capacity'
  | 'tracking_unavailable';

export interface RevealDeps {
  readonly store: EventStore;
  /** Finds a partner's session by id; expired ones may be missing. */
  readonly findSession: (
    partnerId: string,
    sessionId: string,
  ) => Promise<RevealableSession | 'session_not_found' | 'session_expired'>;
  /** Returns why the tracker accepts no new reveals; null if it does. */
  readonly trackerRefusal: (
    partnerId: string,
    trackerId: string,
  ) => Promise<'tracker_disabled' | 'tracker_deleted' | null>;
  /** Consumes the partner's rate of new reveals; false if it is used up. */
  readonly admitRate: (partnerId: string) => boolean | Promise<boolean>;
  readonly savedResult: SavedResultOf;
  /** Reserves room in the partner's queue of webhook deliveries; null if it is full and the reveal must not complete. */
  readonly reserveQueue: (reveal: {
    readonly reveal_id: string;
    readonly tracker_id: string;
    readonly partner_id: string;
  }) => Promise<QueueReservation | null>;
}

export interface RevealRequest {
  readonly partnerId: string;
  readonly sessionId: string;
  /** UUID v4 in lower case. */
  readonly idempotencyKey: string;
}

/** Namespace of reveal ids: the id derives from partner and Idempotency-Key, so a repeated request finds its reveal. */
const REVEALS = '0d7c3c64-3f1e-4c0a-9a55-2f6f4cb7d2a1';
const revealIdOf = ({ partnerId, idempotencyKey }: RevealRequest): string =>
  uuidv5(`${partnerId} ${idempotencyKey}`, REVEALS);

export type RevealSession = (
  request: RevealRequest,
  context: CommandContext,
) => Promise<Result<Reveal, NotRevealed>>;

/** Creates the command. Concurrent equal requests share one execution. */
export const createRevealSession = (deps: RevealDeps): RevealSession => {
  const running = new Map<string, ReturnType<RevealSession>>();
  const linger = createLinger(LINGER);
  return (request, context) => {
    const key = `${revealIdOf(request)} ${request.sessionId}`;
    const known = running.get(key);
    if (known) return known;
    const fresh = linger()
      .then(() => revealSession(deps, request, context))
      .finally(() => running.delete(key));
    running.set(key, fresh);
    return fresh;
  };
};

/**
 * Handles POST …/reveal: makes a new reveal, complete at once if a saved result exists, or returns the earlier reveal of
 * this Idempotency-Key, completed if its result is there by now; a complete one whatever the state of its session and tracker.
 * @throws OutcomeUnknown when the reveal may have been made; the port's other errors when it was not
 */
const revealSession = async (
  deps: RevealDeps,
  request: RevealRequest,
  context: CommandContext,
): Promise<Result<Reveal, NotRevealed>> => {
  const { partnerId, sessionId } = request;
  const revealId = revealIdOf(request);
  const loading = loadReveal(deps.store, revealId, true);
  // A new reveal needs these reads, so they start concurrently with the load.
  const found = startedEarly(deps.findSession(partnerId, sessionId));
  const refusing = startedEarly(
    found().then((one) => (typeof one === 'string' ? null : deps.trackerRefusal(partnerId, one.tracker_id))),
  );
  const resulting = startedEarly(
    found().then((one) => (typeof one === 'string' ? null : resultFor(deps, one, context.at))),
  );
  const known = await loading;
  const earlier = known.state;
  const hasExpired = earlier !== null && Date.parse(earlier.expires_at) <= context.at;
  if (earlier && !hasExpired) {
    // As the decider does, but before the rate and the queue are used.
    if (earlier.session_id !== sessionId) return refuse('idempotency_conflict');
    if (earlier.completed) return accept(earlier);
  }

  const session = await found();
  if (typeof session === 'string') return refuse(session);
  // A reveal expires with its session, which has not expired: the key was used for another one.
  if (hasExpired) return refuse('reveal_expired');
  if (!earlier) {
    const refused = await refusing();
    if (refused !== null) return refuse(refused);
    if (!(await deps.admitRate(partnerId))) return refuse('tracking_capacity');
  }
  const result = await resulting();
  const reveal = {
    reveal_id: revealId,
    session_id: sessionId,
    tracker_id: session.tracker_id,
    partner_id: partnerId,
    key_id: context.keyId ?? null,
    user_id: context.userId ?? null,
    expires_at: session.expires_at,
  };
  const queueReservation = result === null ? NOTHING_QUEUED : await deps.reserveQueue(reveal);
  // A reveal that is already pending stays pending while a queue is full.
  if (queueReservation === null) return earlier ? accept(earlier) : refuse('tracking_unavailable');
  const command: RevealCommand = { type: 'Request', reveal, result, at: context.at };
  return appendReveal(
    deps.store,
    revealId,
    command,
    { ...context, expiresAt: session.expires_at },
    known,
    queueReservation,
  );
};

/** Wraps work that runs already: its failure counts only where its result is asked for. */
const startedEarly = <T>(work: Promise<T>): (() => Promise<T>) => {
  work.catch(() => undefined);
  return () => work;
};

const NOTHING_QUEUED: QueueReservation = { release: () => undefined, confirm: () => undefined };
