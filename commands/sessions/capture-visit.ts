import { LRUCache } from 'lru-cache';
import { parse, v5 as uuidOf } from 'uuid';
import { readEvent } from '../../domain/kernel/events.ts';
import { utcDay } from '../../domain/kernel/time.ts';
import {
  type CustomParameters,
  type SessionEvent,
  type SessionSecrets,
  sessionEvents,
} from '../../domain/sessions/events.ts';
import {
  hasVisitsAhead,
  REMEMBERED,
  type Tab,
  tab,
  tabStream,
  type Visit,
} from '../../domain/sessions/tab.ts';
import {
  type EventStore,
  OutcomeUnknown,
  type Revision,
  StoreBusy,
  StreamExpired,
  WrongExpectedRevision,
} from '../../event-store/port.ts';
import { conflictRetries } from '../conflicts.ts';
import { appendSafely, type CommandContext, toNewEvents } from '../handle.ts';
import { createKeyedMutex } from '../keyed-mutex.ts';
import { createLinger, LINGER } from '../linger.ts';
import { newId } from '../new-id.ts';
import type { QueueEntry } from '../queue-entry.ts';
import { reportingAhead } from '../reporting-ahead.ts';

/** Daily keys that seal personal data of sessions. */
export interface VisitorKeys {
  of(day: string): Promise<VisitorKey | null>;
}

interface VisitorKey {
  digest(text: string): string;
  seal(plain: Buffer, about: string): Buffer;
}

export interface CapturedVisit {
  readonly tracker_id: string;
  readonly partner_id: string;
  /** Token of the browser tab, lower case. */
  readonly token: string;
  readonly visit_id: string;
  /** Canonical address, public or not. */
  readonly ip: string;
  readonly visitor_country: string | null;
  readonly custom: CustomParameters;
}

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

interface KnownTab {
  readonly generation: number;
  readonly state: Tab;
  /** null: the stream does not exist, as far as is known. */
  readonly revision: Revision | null;
}

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

/** Makes the command for each state that is tried; the id and seal of a new session are made only once. */
const commandOf = async (keys: VisitorKeys, visit: CapturedVisit, at: number) => {
  const { ip, custom, token: _, ...rest } = visit;
  const today = utcDay(at);
  const key = await keys.of(today);
  if (key === null) throw new TypeError(`the key of ${today} has been destroyed`);
  const found = new Map([[today, key.digest(ip)]]);
  let begun: ReturnType<Visit['begin']> | null = null;
  const begin = () => {
    const session_id = newId();
    const secrets: SessionSecrets = { ip, custom: { ...custom } };
    const sealed = key.seal(Buffer.from(JSON.stringify(secrets)), session_id).toString('base64');
    return { session_id, sealed };
  };
  return async ({ sessions }: Tab): Promise<Visit> => {
    for (const { first_seen_at } of sessions) {
      const day = first_seen_at.slice(0, 10);
      if (found.has(day)) continue;
      const earlier = await keys.of(day);
      if (earlier !== null) found.set(day, earlier.digest(ip));
    }
    return {
      ...rest,
      type: 'Visit',
      at,
      visitorOn: (day) => found.get(day) ?? null,
      begin: () => {
        begun ??= begin();
        return begun;
      },
    };
  };
};

/**
 * Reads the end of a tab's stream. Its newest events may be hidden, because they expire with their sessions; the revision is
 * then that of the last hidden one. An event that caused a conflict but cannot be read is not replicated yet and may hold
 * the session of the visit; so the result stays behind it, and the next append conflicts again.
 * @param actual the revision that the conflict reported
 */
const readTab = async (
  store: EventStore,
  tabId: string,
  generation: number,
  actual: Revision | null,
): Promise<KnownTab> => {
  const stream = tabStream(tabId, generation);
  const readBack = (limit: number, includeExpired: boolean) =>
    Array.fromAsync(store.readStream(stream, { direction: 'backwards', limit, includeExpired }));
  let back = await readBack(REMEMBERED, false);
  let revision = back[0]?.revision ?? -1;
  if (revision < (actual ?? -1)) {
    const [last] = await readBack(1, true);
    // Repeated, so that an event appended between the two reads is not missed.
    back = await readBack(REMEMBERED, false);
    revision = Math.max(back[0]?.revision ?? -1, last?.revision ?? -1);
  }
  const state = back.reduceRight((folded, stored) => {
    const event = readEvent(sessionEvents, stored);
    return event === null ? folded : tab.evolve(folded, event);
  }, tab.initial);
  return { generation, state, revision: revision < 0 ? null : revision };
};
