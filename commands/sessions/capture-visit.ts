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

/** The keys of days, under which what is personal of a session is sealed. */
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
  /** The tab's, lower case. */
  readonly token: string;
  readonly visit_id: string;
  /** Canonical; public or not. */
  readonly ip: string;
  readonly visitor_country: string | null;
  readonly custom: CustomParameters;
}

/** `retry`: the visit was there before, and nothing was written. `full`: it would begin a session, and must not. */
export type Captured = 'session' | 'visit' | 'retry' | 'full';

/** A place in the queue for whoever is to be told of a session; null: there is none, and it must not begin. */
export type EnterQueue = (
  session: Pick<SessionEvent['data'], 'session_id' | 'tracker_id' | 'partner_id'>,
) => Promise<QueueEntry | null>;

/**
 * Finds or begins the session of a visit. `admitted` is called, perhaps more than once, as soon as it will not be `full`.
 * @throws OutcomeUnknown, or the port's other errors when nothing was written; the same visit may be sent again
 */
export type CaptureVisit = (
  visit: CapturedVisit,
  context: CommandContext,
  admitted?: () => void,
) => Promise<Captured>;

/** A tab's stream as this process knows it. */
interface KnownTab {
  readonly generation: number;
  readonly state: Tab;
  /** null: the stream is not there, as far as is known. */
  readonly revision: Revision | null;
}

/** Of Doorplate's tabs: tracker and token make the name of a tab's stream. */
const TABS = parse('b7c1b8f2-6d0e-5b5c-8f5d-2f1f6a1f0c3e');
const CACHED_TABS = 10_000;
/** As long as somebody waits for the answer. */
const PATIENCE_MS = 4_500;

const UNKNOWN: KnownTab = { generation: 0, state: tab.initial, revision: null };

/**
 * Most visits are a tab's first, or follow one that this process has handled: the decision is made on what is known
 * here, on nothing at first, and the append at that exact revision tells whether it was enough. Only then is the end
 * of the stream read.
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
    if (!isWanted()) throw new StoreBusy(`others wait to write to tab ${tabId}`);
    const command = await commandOf(keys, visit, context.at);
    let current = known.get(tabId) ?? UNKNOWN;
    let looked = false;
    let wasRefused = false;
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
        if (looked) return 'full';
        // What is not known here may be a session that the visit is of.
        looked = true;
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
        queueEntry?.happened();
        return begins ? 'session' : 'visit';
      } catch (error) {
        known.delete(tabId);
        // Of an unknown outcome the place is kept for a while: it may be there.
        if (!(error instanceof OutcomeUnknown)) queueEntry?.leave();
        if (!isWanted()) throw error;
        if (error instanceof StreamExpired) current = { ...UNKNOWN, generation: generation + 1 };
        else {
          // The first refusal only says that the tab has a stream.
          if (wasRefused || !(error instanceof WrongExpectedRevision)) await afterConflict(error);
          wasRefused = true;
          const actual = error instanceof WrongExpectedRevision ? error.actual : null;
          current = await readTab(store, tabId, generation, actual);
        }
      }
    }
  };

  return async (visit, context, admitted = () => undefined) => {
    await linger();
    const tabId = uuidOf(Buffer.from(`${visit.tracker_id} ${visit.token}`), TABS);
    const deadline = performance.now() + PATIENCE_MS;
    return oneAtATime(tabId, () =>
      capture(tabId, visit, context, admitted, () => performance.now() < deadline),
    );
  };
};

const reportedTab = reportingAhead(tab, 'session', (state, visit: Visit) => hasVisitsAhead(state, visit.at));

const decided = (command: Visit, state: Tab): readonly SessionEvent[] => {
  const decision = reportedTab.decide(command, state);
  if (!decision.ok) throw new TypeError('no visit is refused');
  return decision.value;
};

/** The command for a state, which tells the days whose keys it takes; the session that may begin is made once. */
const commandOf = async (keys: VisitorKeys, visit: CapturedVisit, at: number) => {
  const { ip, custom, token: _, ...rest } = visit;
  const today = utcDay(at);
  const key = await keys.of(today);
  if (key === null) throw new TypeError(`the key of ${today} is gone`);
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
 * Reads the end of a tab's stream. Its newest events may be hidden, as they expire with their sessions; then the stream
 * stands at the last hidden one. An event that refused an append but is not readable at all is not replicated yet: it may
 * hold the session of the visit, so the result stays behind it, and the next append is refused again.
 * @param actual the revision that the refused append told
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
    // Again, so that no event between the two reads is passed over.
    back = await readBack(REMEMBERED, false);
    revision = Math.max(back[0]?.revision ?? -1, last?.revision ?? -1);
  }
  const state = back.reduceRight((folded, stored) => {
    const event = readEvent(sessionEvents, stored);
    return event === null ? folded : tab.evolve(folded, event);
  }, tab.initial);
  return { generation, state, revision: revision < 0 ? null : revision };
};
