import { v5 as uuidv5 } from 'uuid';
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
import { type EventStore, OutcomeUnknown, type ReadOptions, StreamExpired } from '../../event-store/port.ts';
import { createBatchDelay, GROUP_COMMIT_DELAY } from '../batch-delay.ts';
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
type UseSavedResult = (ip: string, partnerId: string, at: number) => Promise<RevealResult | null>;

type KnownReveal = Awaited<ReturnType<typeof load<Reveal | null, RevealCommand, RevealEvent, RevealRefusal>>>;

const loadReveal = (
  store: EventStore,
  revealId: string,
  options: Pick<ReadOptions, 'includeExpired' | 'onExpired'> = {},
): Promise<KnownReveal> => load(store, aggregate, revealStream(revealId), undefined, options);

/** Returns the result that an address has for a partner; null: none yet. `at` in milliseconds. */
const resultFor = (
  { useSavedResult }: { readonly useSavedResult: UseSavedResult },
  { publicIp, partner_id }: RevealableSession,
  at: number,
): Promise<RevealResult | null> =>
  publicIp === null ? Promise.resolve(EMPTY_RESULT) : useSavedResult(publicIp, partner_id, at);

/**
 * Handles a command on a loaded reveal, and confirms or releases its queue reservation.
 * @throws OutcomeUnknown when the event may be stored; the port's other errors when it is not
 */
async function appendReveal(
  store: EventStore,
  revealId: string,
  command: RevealCommand,
  context: CommandContext,
  known: KnownReveal,
  queueReservation: QueueReservation,
): Promise<Result<Reveal, RevealRefusal | 'reveal_expired'>> {
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
}

type NotRevealed =
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
  /** Returns whether a reveal whose stream is deleted ended before its time. */
  readonly isErased: (partnerId: string, revealId: string) => Promise<boolean>;
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

/** Creates the command. Concurrent equal requests share one execution, and concurrent reveals share a group commit. */
export function createRevealSession(deps: RevealDeps): RevealSession {
  const running = new Map<string, ReturnType<RevealSession>>();
  const batchDelay = createBatchDelay(GROUP_COMMIT_DELAY);
  return (request, context) => {
    const equalRequests = `${revealIdOf(request)} ${request.sessionId}`;
    const shared = running.get(equalRequests);
    if (shared) return shared;
    const execution = batchDelay()
      .then(() => revealSession(deps, request, context))
      .finally(() => running.delete(equalRequests));
    running.set(equalRequests, execution);
    return execution;
  };
}

/**
 * Handles POST …/reveal (contract, Reveals 1, 2 and 7). A new reveal completes at once if a saved result exists or the
 * visitor's address is not public. The earlier reveal of this Idempotency-Key is returned, also while its tracker is disabled
 * or deleted: as it is if it is complete, else completed if its result exists by now.
 * @throws OutcomeUnknown when the reveal may have been made; the port's other errors when it was not
 */
async function revealSession(
  deps: RevealDeps,
  request: RevealRequest,
  context: CommandContext,
): Promise<Result<Reveal, NotRevealed>> {
  const { partnerId, sessionId } = request;
  const revealId = revealIdOf(request);
  let isDeleted = false;
  const onExpired = (): void => {
    isDeleted = true;
  };
  const load = (): Promise<KnownReveal> =>
    loadReveal(deps.store, revealId, { includeExpired: true, onExpired });
  const sessionRead = failingWhenAwaited(deps.findSession(partnerId, sessionId));
  // A new reveal needs all of these reads. They start at one moment, so that the store reads their streams in one statement. Recording
  // the use of the saved result again does no harm.
  const loading = sessionRead.then(load, load);
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

  // Of a reveal that expired with its session the session says so.
  if (isDeleted && (await deps.isErased(partnerId, revealId))) return refuse('reveal_expired');
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
}

/** Marks a promise that may never be awaited: its rejection is no unhandled one, and throws where it is awaited. */
function failingWhenAwaited<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

/** For a reveal that stays pending, so that no delivery follows. */
const NONE_NEEDED: QueueReservation = { release: () => undefined, confirm: () => undefined };

/** What a completion needs, in a request and in a worker. */
export type CompletionPorts = Pick<RevealDeps, 'store' | 'findSession' | 'useSavedResult' | 'reserveQueue'>;

/**
 * Completes a pending reveal if its result exists. Idempotent.
 * @returns null if the reveal is gone
 * @throws what `appendReveal` throws
 */
export async function completeReveal(
  deps: CompletionPorts,
  revealId: string,
  context: CommandContext,
): Promise<Reveal | null> {
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
}
