import { LRUCache } from 'lru-cache';
import { parse, v5 as uuidOf } from 'uuid';
import { type SessionEvent, sessionEvents } from '../../domain/sessions/events.ts';
import { hasVisitsAhead, type Tab, tabDecider, tabStream, type Visit } from '../../domain/sessions/tab.ts';
import {
  type EventStore,
  OutcomeUnknown,
  StoreBusy,
  StreamExpired,
  WrongExpectedRevision,
} from '../../event-store/port.ts';
import { conflictRetries } from '../conflicts.ts';
import { appendSafely, type CommandContext, toNewEvents } from '../handle.ts';
import { createKeyedMutex } from '../keyed-mutex.ts';
import { createLinger, LINGER } from '../linger.ts';
import type { QueueReservation } from '../queue-reservation.ts';
import { reportingAhead } from '../reporting-ahead.ts';
import { type KnownTab, readTab } from './read-tab.ts';
import { type CapturedVisit, commandOf, type VisitCommand, type VisitorKeys } from './visit-command.ts';

/** `retry`: a repeated visit, nothing was written. `full`: a new session is refused, because a delivery queue is full. */
export type Captured = 'session' | 'visit' | 'retry' | 'full';

/** Reserves room in the partner's queue of webhook deliveries; null if it is full and the session must not begin. */
export type ReserveQueue = (
  session: Pick<SessionEvent['data'], 'session_id' | 'tracker_id' | 'partner_id'>,
  ip: string,
) => Promise<QueueReservation | null>;

/**
 * Adds a visit to its session, or begins one. `admitted` is called, possibly repeatedly, as soon as `full` is ruled out.
 * @throws OutcomeUnknown, or the port's other errors when nothing was written; repeating the visit is safe
 */
export type CaptureVisit = (
  visit: CapturedVisit,
  context: CommandContext,
  admitted?: () => void,
) => Promise<Captured>;

/** Namespace of tab ids, which derive from tracker and token. */
const TABS = parse('b7c1b8f2-6d0e-5b5c-8f5d-2f1f6a1f0c3e');
/** Cached tabs, each counted with its sessions and visits: a visitor may fill a tab up to what is remembered. */
const CACHE_SIZE = 200_000;
const TAB_SIZE = 10;
/** The caller gives up about then. */
const MAX_CAPTURE_MS = 4_500;

const UNKNOWN: KnownTab = { generation: 0, state: tabDecider.initial, revision: null };

/**
 * Creates the command. Most visits are a tab's first or follow one in this process, so it decides on the cached state, or
 * on an empty one; the append at that exact revision detects stale state. Only after a conflict it reads the stream's end.
 */
export const createVisitCapture = (
  store: EventStore,
  keys: VisitorKeys,
  reserveQueue: ReserveQueue,
): CaptureVisit => {
  const capturer = new VisitCapturer(store, keys, reserveQueue);
  return (visit, context, admitted) => capturer.capture(visit, context, admitted);
};

const sizeOf = ({ state }: KnownTab): number => TAB_SIZE + state.sessions.length + state.visits.length;

/** One visit on its way into its tab's stream. */
interface Capturing {
  readonly tabId: string;
  readonly ip: string;
  readonly context: CommandContext;
  readonly command: VisitCommand;
  readonly admitted: () => void;
  /** Returns whether the caller still waits. */
  readonly isWanted: () => boolean;
  readonly afterConflict: (error: unknown) => Promise<void>;
  /** The state of the tab that the visit is decided on. */
  current: KnownTab;
  hasReadStream: boolean;
  hadConflict: boolean;
}

class VisitCapturer {
  readonly #store: EventStore;
  readonly #keys: VisitorKeys;
  readonly #reserveQueue: ReserveQueue;
  readonly #known = new LRUCache<string, KnownTab>({ maxSize: CACHE_SIZE, sizeCalculation: sizeOf });
  readonly #oneAtATime = createKeyedMutex();
  readonly #linger = createLinger(LINGER);

  constructor(store: EventStore, keys: VisitorKeys, reserveQueue: ReserveQueue) {
    this.#store = store;
    this.#keys = keys;
    this.#reserveQueue = reserveQueue;
  }

  async capture(
    visit: CapturedVisit,
    context: CommandContext,
    admitted: () => void = () => undefined,
  ): Promise<Captured> {
    await this.#linger();
    const tabId = uuidOf(Buffer.from(`${visit.tracker_id} ${visit.token}`), TABS);
    const deadline = performance.now() + MAX_CAPTURE_MS;
    const isWanted = (): boolean => performance.now() < deadline;
    return this.#oneAtATime(tabId, async () => {
      if (!isWanted()) throw new StoreBusy(`earlier visits of tab ${tabId} took too long`);
      const command = await commandOf(this.#keys, visit, context.at);
      const capturing: Capturing = {
        tabId,
        ip: visit.ip,
        context,
        command,
        admitted,
        isWanted,
        afterConflict: conflictRetries(),
        current: this.#known.get(tabId) ?? UNKNOWN,
        hasReadStream: false,
        hadConflict: false,
      };
      for (;;) {
        const captured = await this.#tryOnce(capturing);
        if (captured !== null) return captured;
      }
    });
  }

  /** Decides on the current state and appends; null: the state was not current, and has been read again. */
  async #tryOnce(capturing: Capturing): Promise<Captured | null> {
    const { tabId, ip, current, command, admitted, context } = capturing;
    const events = decided(await command(current.state), current.state);
    const [event] = events;
    if (event === undefined) {
      this.#known.set(tabId, current);
      admitted();
      return 'retry';
    }
    const begins = event.type === 'sessions.SessionCreated.v1';
    const queueReservation = begins ? await this.#reserveQueue(event.data, ip) : null;
    if (begins && queueReservation === null) {
      if (capturing.hasReadStream) return 'full';
      // The cached state may lack the session that the visit belongs to.
      capturing.hasReadStream = true;
      capturing.current = await readTab(this.#store, tabId, current.generation, context.at);
      return null;
    }
    admitted();
    try {
      await this.#append(capturing, events, event.data.expires_at);
    } catch (error) {
      // After an unknown outcome the room stays reserved until it times out, because the event may be stored.
      if (!(error instanceof OutcomeUnknown)) queueReservation?.release();
      await this.#readAgain(capturing, error);
      return null;
    }
    queueReservation?.confirm();
    return begins ? 'session' : 'visit';
  }

  async #append(
    { tabId, context, current, isWanted }: Capturing,
    events: readonly SessionEvent[],
    expiresAt: string,
  ): Promise<void> {
    const { generation, state } = current;
    const { revision } = await appendSafely(
      this.#store,
      tabStream(tabId, generation),
      current.revision ?? 'no_stream',
      toNewEvents(sessionEvents, events, { ...context, expiresAt }),
      isWanted,
    );
    this.#known.set(tabId, { generation, state: events.reduce(tabDecider.evolve, state), revision });
  }

  /** Reads the tab again after a refused append. @throws the error, unless it is a conflict that may be retried */
  async #readAgain(capturing: Capturing, error: unknown): Promise<void> {
    const { tabId, context, current, hadConflict, isWanted, afterConflict } = capturing;
    this.#known.delete(tabId);
    if (!isWanted()) throw error;
    if (error instanceof StreamExpired) {
      capturing.current = { ...UNKNOWN, generation: current.generation + 1 };
      return;
    }
    // The first conflict only reveals that the tab has a stream, so it needs no pause.
    if (hadConflict || !(error instanceof WrongExpectedRevision)) await afterConflict(error);
    capturing.hadConflict = true;
    capturing.current = await readTab(this.#store, tabId, current.generation, context.at);
  }
}

const reportedTab = reportingAhead(tabDecider, 'session', (state, visit: Visit) =>
  hasVisitsAhead(state, visit.at),
);

const decided = (command: Visit, state: Tab): readonly SessionEvent[] => {
  const decision = reportedTab.decide(command, state);
  if (!decision.ok) throw new TypeError('the tab refused a visit, which it never does');
  return decision.value;
};
