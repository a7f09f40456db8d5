import { LRUCache } from 'lru-cache';
import { parse, v5 as uuidOf } from 'uuid';
import { type SessionEvent, sessionEvents } from '../../domain/sessions/events.ts';
import { hasVisitsAhead, type Tab, tab, tabStream, type Visit } from '../../domain/sessions/tab.ts';
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
import type { QueueEntry } from '../queue-entry.ts';
import { reportingAhead } from '../reporting-ahead.ts';

import { type KnownTab, readTab } from './read-tab.ts';
import { type CapturedVisit, commandOf, type VisitorKeys } from './visit-command.ts';
/** `retry`: a repeated visit, nothing was written. `full`: a new session is refused, because a delivery queue is full. */
export type Captured = 'session' | 'visit' | 'retry' | 'full';

/** Reserves a slot in the queues of subscribed endpoints; null if one is full and the session must not begin. */
export type EnterQueue = (
  session: Pick<SessionEvent['data'], 'session_id' | 'tracker_id' | 'partner_id'>,
) => Promise<QueueEntry | null>;

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
const CACHED_TABS = 10_000;
/** The caller gives up about then. */
const MAX_CAPTURE_MS = 4_500;

const UNKNOWN: KnownTab = { generation: 0, state: tab.initial, revision: null };

/**
 * Creates the command. Most visits are a tab's first or follow one in this process, so it decides on the cached state, or
 * on an empty one; the append at that exact revision detects stale state. Only after a conflict it reads the stream's end.
 */
export const createVisitCapture = (
  store: EventStore,
  keys: VisitorKeys,
  enterQueue: EnterQueue,
): CaptureVisit => {
  const known = new LRUCache<string, KnownTab>({ max: CACHED_TABS });
  const oneAtATime = createKeyedMutex();
  const linger = createLinger(LINGER);

  const capture = async (
    tabId: string,
    visit: CapturedVisit,
    context: CommandContext,
    admitted: () => void,
    isWanted: () => boolean,
  ): Promise<Captured> => {
    if (!isWanted()) throw new StoreBusy(`earlier visits of tab ${tabId} took too long`);
    const command = await commandOf(keys, visit, context.at);
    let current = known.get(tabId) ?? UNKNOWN;
    let hasReadStream = false;
    let hadConflict = false;
    const afterConflict = conflictRetries();
    for (;;) {
      const { generation, state } = current;
      const events = decided(await command(state), state);
      const [event] = events;
      if (event === undefined) {
        known.set(tabId, current);
        admitted();
        return 'retry';
      }
      const begins = event.type === 'sessions.SessionCreated.v1';
      const queueEntry = begins ? await enterQueue(event.data) : null;
      if (begins && queueEntry === null) {
        if (hasReadStream) return 'full';
        // The cached state may lack the session that the visit belongs to.
        hasReadStream = true;
        current = await readTab(store, tabId, generation, current.revision);
        continue;
      }
      admitted();
      try {
        const { revision } = await appendSafely(
          store,
          tabStream(tabId, generation),
          current.revision ?? 'no_stream',
          toNewEvents(sessionEvents, events, { ...context, expiresAt: event.data.expires_at }),
          isWanted,
        );
        known.set(tabId, { generation, state: events.reduce(tab.evolve, state), revision });
        queueEntry?.confirm();
        return begins ? 'session' : 'visit';
      } catch (error) {
        known.delete(tabId);
        // After an unknown outcome the slot stays reserved until it times out, because the event may be stored.
        if (!(error instanceof OutcomeUnknown)) queueEntry?.release();
        if (!isWanted()) throw error;
        if (error instanceof StreamExpired) current = { ...UNKNOWN, generation: generation + 1 };
        else {
          // The first conflict only reveals that the tab has a stream, so it needs no pause.
          if (hadConflict || !(error instanceof WrongExpectedRevision)) await afterConflict(error);
          hadConflict = true;
          const actual = error instanceof WrongExpectedRevision ? error.actual : null;
          current = await readTab(store, tabId, generation, actual);
        }
      }
    }
  };

  return async (visit, context, admitted = () => undefined) => {
    await linger();
    const tabId = uuidOf(Buffer.from(`${visit.tracker_id} ${visit.token}`), TABS);
    const deadline = performance.now() + MAX_CAPTURE_MS;
    return oneAtATime(tabId, () =>
      capture(tabId, visit, context, admitted, () => performance.now() < deadline),
    );
  };
};

const reportedTab = reportingAhead(tab, 'session', (state, visit: Visit) => hasVisitsAhead(state, visit.at));

const decided = (command: Visit, state: Tab): readonly SessionEvent[] => {
  const decision = reportedTab.decide(command, state);
  if (!decision.ok) throw new TypeError('the tab refused a visit, which it never does');
  return decision.value;
};
