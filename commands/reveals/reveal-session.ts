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
  type UseSavedResult,
} from './append-reveal.ts';

export type NotRevealed =
  | RevealRefusal
  | 'session_not_found'
  | 'session_expired'
  | 'reveal_expired'
  | 'tracker_disabled'
  | 'tracker_deleted'
  /** The partner's rate of new reveals is used up. */
  | 'tracking_capacity'
  /** The reveal would complete, and the partner's queue of deliveries is full. */
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
  readonly useSavedResult: UseSavedResult;
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

const EXPIRED_TOO = { includeExpired: true };

export type RevealSession = (
  request: RevealRequest,
  context: CommandContext,
) => Promise<Result<Reveal, NotRevealed>>;

/** Creates the command. Concurrent equal requests share one execution, and concurrent reveals share a group commit. */
export const createRevealSession = (deps: RevealDeps): RevealSession => {
  const running = new Map<string, ReturnType<RevealSession>>();
  const linger = createLinger(LINGER);
  return (request, context) => {
    const equalRequests = `${revealIdOf(request)} ${request.sessionId}`;
    const shared = running.get(equalRequests);
    if (shared) return shared;
    const execution = linger()
      .then(() => revealSession(deps, request, context))
      .finally(() => running.delete(equalRequests));
    running.set(equalRequests, execution);
    return execution;
  };
};

/**
 * Handles POST …/reveal (contract, Reveals 1, 2 and 7). A new reveal completes at once if a saved result exists or the
 * visitor's address is not public. The earlier reveal of this Idempotency-Key is returned, also while its tracker is disabled
 * or deleted: as it is if it is complete, else completed if its result exists by now.
 * @throws OutcomeUnknown when the reveal may have been made; the port's other errors when it was not
 */
const revealSession = async (
  deps: RevealDeps,
  request: RevealRequest,
  context: CommandContext,
): Promise<Result<Reveal, NotRevealed>> => {
  const { partnerId, sessionId } = request;
  const revealId = revealIdOf(request);
  const loading = loadReveal(deps.store, revealId, EXPIRED_TOO);
  // A new reveal needs these reads, so they start concurrently with the load. Recording the use of the saved result again does no harm.
  const sessionRead = failingWhenAwaited(deps.findSession(partnerId, sessionId));
  const refusalRead = failingWhenAwaited(
    sessionRead.then((one) =>
      typeof one === 'string' ? null : deps.trackerRefusal(partnerId, one.tracker_id),
    ),
  );
  const resultRead = failingWhenAwaited(
    sessionRead.then((one) => (typeof one === 'string' ? null : resultFor(deps, one, context.at))),
  );
  const known = await loading;
  const earlier = known.state;
  const hasExpired = earlier !== null && Date.parse(earlier.expires_at) <= context.at;
  if (earlier && !hasExpired) {
    // As the decider does, but before the rate and the queue are used.
    if (earlier.session_id !== sessionId) return refuse('idempotency_conflict');
    if (earlier.completed) return accept(earlier);
  }

  const session = await sessionRead;
  if (typeof session === 'string') return refuse(session);
  // A reveal expires with its session. This session has not expired, so the expired reveal was of another one.
  if (hasExpired) return refuse('reveal_expired');
  if (!earlier) {
    const refused = await refusalRead;
    if (refused !== null) return refuse(refused);
    if (!(await deps.admitRate(partnerId))) return refuse('tracking_capacity');
  }
  const result = await resultRead;
  const reveal = {
    reveal_id: revealId,
    session_id: sessionId,
    tracker_id: session.tracker_id,
    partner_id: partnerId,
    key_id: context.keyId ?? null,
    user_id: context.userId ?? null,
    expires_at: session.expires_at,
  };
  const queueReservation = result === null ? NONE_NEEDED : await deps.reserveQueue(reveal);
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

/** Marks a promise that may never be awaited: its rejection is no unhandled one, and throws where it is awaited. */
const failingWhenAwaited = <T>(promise: Promise<T>): Promise<T> => {
  promise.catch(() => undefined);
  return promise;
};

/** For a reveal that stays pending, so that no delivery follows. */
const NONE_NEEDED: QueueReservation = { release: () => undefined, confirm: () => undefined };
