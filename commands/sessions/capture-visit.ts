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
  MAX_TAB_EVENTS,
  type Tab,
  tabDecider,
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
import { createSemaphores } from '../../platform/limits/semaphore.ts';
import { createBatchDelay, GROUP_COMMIT_DELAY } from '../batch-delay.ts';
import {
  appendSafely,
  type CommandContext,
  conflictRetries,
  newId,
  reportingAhead,
  toNewEvents,
} from '../handle.ts';
import type { QueueReservation } from '../queue-reservation.ts';

/** A visit as it reached the service. */
export interface Capture {
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

/** `retry`: a repeated visit: nothing is written, and the request is counted. `full`: a new session is refused, because a delivery queue is full. */
export type CaptureOutcome = 'session' | 'visit' | 'retry' | 'full';

/** Daily keys that seal personal data of sessions. */
interface VisitorKeys {
  of(day: string): Promise<VisitorKey | null>;
}

interface VisitorKey {
  digest(text: string): string;
  seal(plain: Buffer, about: string): Buffer;
}

/** Reserves room in the partner's queue of webhook deliveries; null if it is full and the session must not begin. */
type ReserveQueue = (
  session: Pick<SessionEvent['data'], 'session_id' | 'tracker_id' | 'partner_id'>,
) => Promise<QueueReservation | null>;

/**
 * Adds a visit to its session, or begins one. `onAdmitted` is called, possibly repeatedly, as soon as `full` is ruled out.
 * @throws OutcomeUnknown, or the port's other errors when nothing was written; repeating the visit is safe
 */
export type CaptureVisit = (
  visit: Capture,
  context: CommandContext,
  onAdmitted?: () => void,
) => Promise<CaptureOutcome>;

/** A tab as this process knows it. */
interface KnownTab {
  readonly generation: number;
  readonly state: Tab;
  /** null: the stream does not exist, as far as is known. */
  readonly revision: Revision | null;
}

/** Namespace of tab ids, which derive from tracker and token. */
const TABS = parse('b7c1b8f2-6d0e-5b5c-8f5d-2f1f6a1f0c3e');
/** Cached tabs, each counted with its sessions and visits: a visitor may fill a tab up to what is remembered. */
const CACHE_SIZE = 200_000;
const TAB_SIZE = 10;
/** The caller gives up about then. */
const MAX_CAPTURE_MS = 4_500;

const UNKNOWN: KnownTab = { generation: 0, state: tabDecider.initial, revision: null };

const sizeOf = ({ state }: KnownTab): number => TAB_SIZE + state.sessions.length + state.visits.length;

/**
 * Creates the command. A visit is decided on a state of its tab and appended at that state's exact revision, which detects a stale one:
 * 1. on the state that this process has cached, or on an empty one: most visits are a tab's first or follow one in this process;
 * 2. on the end of the stream, after a conflict, or where the queue is full and the cached state may lack the session;
 * 3. on an empty tab of the next generation, where the stream has expired.
 * It ends as `retry` where the state has the visit, as `full`, as stored (`session`, `visit`), or with the port's error.
 */
export function createCaptureVisit(
  store: EventStore,
  keys: VisitorKeys,
  reserveQueue: ReserveQueue,
): CaptureVisit {
  const knownTabs = new LRUCache<string, KnownTab>({ maxSize: CACHE_SIZE, sizeCalculation: sizeOf });
  /** Concurrent visits of a tab would only cause conflicts. */
  const oneAtATime = createSemaphores({ limit: 1 });
  const batchDelay = createBatchDelay(GROUP_COMMIT_DELAY);

  return async (visit, context, onAdmitted = () => undefined) => {
    await batchDelay();
    const tabId = uuidOf(Buffer.from(`${visit.tracker_id} ${visit.token}`), TABS);
    const deadline = performance.now() + MAX_CAPTURE_MS;
    const isWanted = (): boolean => performance.now() < deadline;
    const readStream = ({ generation }: KnownTab) => readTab(store, tabId, generation, context.at);

    /** Appends what was decided on a state. @returns the state to decide on instead; null: the events are stored */
    async function append(
      tab: KnownTab,
      events: readonly SessionEvent[],
      expiresAt: string,
      reservation: QueueReservation | null,
      afterConflict: AfterConflict,
    ): Promise<KnownTab | null> {
      const { generation, state } = tab;
      try {
        const { revision } = await appendSafely(
          store,
          tabStream(tabId, generation),
          tab.revision ?? 'no_stream',
          toNewEvents(sessionEvents, events, { ...context, expiresAt }),
          isWanted,
        );
        knownTabs.set(tabId, { generation, state: events.reduce(tabDecider.evolve, state), revision });
        reservation?.confirm();
        return null;
      } catch (error) {
        // After an unknown outcome the room stays reserved until it times out, because the event may be stored.
        if (!(error instanceof OutcomeUnknown)) reservation?.release();
        knownTabs.delete(tabId);
        if (!isWanted()) throw error;
        if (error instanceof StreamExpired) return { ...UNKNOWN, generation: generation + 1 };
        await afterConflict(error);
        return readStream(tab);
      }
    }

    return oneAtATime.enter(tabId, async () => {
      if (!isWanted()) throw new StoreBusy(`earlier visits of tab ${tabId} took too long`);
      const commandOn = await createVisit(keys, visit, context.at);
      const afterConflict = pauseAfterConflicts();

      /** `mayLack`: the state may lack the session that the visit belongs to. */
      async function captureOn(tab: KnownTab, mayLack: boolean): Promise<CaptureOutcome> {
        const events = decided(await commandOn(tab.state), tab.state);
        const [event] = events;
        if (event === undefined) {
          knownTabs.set(tabId, tab);
          onAdmitted();
          return 'retry';
        }
        const begins = event.type === 'sessions.SessionCreated.v1';
        const reservation = begins ? await reserveQueue(event.data) : null;
        if (begins && reservation === null) return mayLack ? captureOn(await readStream(tab), false) : 'full';
        onAdmitted();
        const instead = await append(tab, events, event.data.expires_at, reservation, afterConflict);
        if (instead !== null) return captureOn(instead, mayLack);
        return begins ? 'session' : 'visit';
      }

      return captureOn(knownTabs.get(tabId) ?? UNKNOWN, true);
    });
  };
}

type AfterConflict = (error: unknown) => Promise<unknown>;

/**
 * Pauses after each conflict but the first, which only reveals that the tab has a stream; its time begins at this call.
 * @throws what is no conflict
 */
function pauseAfterConflicts(): AfterConflict {
  const pause = conflictRetries();
  let isFirst = true;
  return async (error) => {
    const isExpected = isFirst && error instanceof WrongExpectedRevision;
    isFirst = false;
    if (!isExpected) await pause(error);
  };
}

/**
 * Returns what makes the command for each state of the tab that is tried. The id and seal of a session that may begin are made once.
 * @param at milliseconds
 */
async function createVisit(
  keys: VisitorKeys,
  { ip, custom, token: _, ...visit }: Capture,
  at: number,
): Promise<(state: Tab) => Promise<Visit>> {
  const today = utcDay(at);
  const key = await keys.of(today);
  if (key === null) throw new TypeError(`the key of ${today} has been destroyed`);
  const session_id = newId();
  const secrets: SessionSecrets = { ip, custom: { ...custom } };
  const sealed = key.seal(Buffer.from(JSON.stringify(secrets)), session_id).toString('base64');
  const visitors = new Map([[today, key.digest(ip)]]);
  return async ({ sessions }) => {
    for (const { first_seen_at } of sessions) {
      const day = first_seen_at.slice(0, 10);
      if (visitors.has(day)) continue;
      const earlier = await keys.of(day);
      if (earlier !== null) visitors.set(day, earlier.digest(ip));
    }
    return { ...visit, type: 'Visit', at, visitors, session: { session_id, sealed } };
  };
}

/**
 * Reads the end of a tab's stream. It reads hidden events too and leaves out those of expired sessions: skipping the hidden
 * visits of one session could mean reading millions. An event that caused a conflict but cannot be read is not replicated yet
 * and may hold the session of the visit; so the result stays behind it, and the next append conflicts again.
 * @param at milliseconds
 */
async function readTab(store: EventStore, tabId: string, generation: number, at: number): Promise<KnownTab> {
  const read = { direction: 'backwards', limit: MAX_TAB_EVENTS, includeExpired: true } as const;
  const back = await Array.fromAsync(store.readStream(tabStream(tabId, generation), read));
  const state = back.reduceRight((folded, stored) => {
    const event = readEvent(sessionEvents, stored);
    const isLive = event !== null && Date.parse(event.data.expires_at) > at;
    return isLive ? tabDecider.evolve(folded, event) : folded;
  }, tabDecider.initial);
  return { generation, state, revision: back[0]?.revision ?? null };
}

const reportedTab = reportingAhead(tabDecider, 'session', (state, visit: Visit) =>
  hasVisitsAhead(state, visit.at),
);

function decided(command: Visit, state: Tab): readonly SessionEvent[] {
  const decision = reportedTab.decide(command, state);
  if (!decision.ok) throw new TypeError('the tab refused a visit, which it never does');
  return decision.value;
}
