/** Erasing sessions of a tab whose stream others share: these are appended to the tab's next stream, and the old one is deleted. */
import { inChunks } from '../../domain/kernel/chunks.ts';
import { readEvent } from '../../domain/kernel/events.ts';
import { type SessionEvent, sessionEvents } from '../../domain/sessions/events.ts';
import { MAX_TAB_EVENTS, nextTabStream } from '../../domain/sessions/tab.ts';
import type { EventStore, Position, Revision } from '../../event-store/port.ts';
import { throttled } from '../../platform/clock/waiting.ts';
import { appendSafely, type CommandContext, toNewEvents } from '../handle.ts';

type Kept = Extract<SessionEvent, { type: 'sessions.SessionKept.v1' }>['data'];

/** What the rest of a tab's stream was when it was read. */
export interface LeftTab {
  /** The sessions that the stream holds. */
  readonly sessionIds: ReadonlySet<string>;
  /** Visits of the erased sessions. */
  readonly visits: number;
  /** Tracker and hour in which each of the stream's sessions began. */
  readonly hours: readonly (readonly [trackerId: string, hour: string])[];
  /** null: the stream is empty or deleted. */
  readonly last: { readonly revision: Revision; readonly position: Position } | null;
}

/** Folds what a tab's stream holds of each session, in the order of their last visits. */
async function readSessions(store: EventStore, stream: string) {
  const sessions = new Map<string, Kept>();
  let last: LeftTab['last'] = null;
  for await (const stored of throttled(store.readStream(stream))) {
    last = { revision: stored.revision, position: stored.position };
    const event = readEvent(sessionEvents, stored);
    if (event === null) continue;
    const { session_id } = event.data;
    const kept = afterEvent(sessions.get(session_id), event, stored.position);
    sessions.delete(session_id);
    if (kept !== null) sessions.set(session_id, kept);
  }
  return { sessions, last };
}

/** @returns null for a visit of a session whose beginning the stream does not hold, so that no reader knows of it */
function afterEvent(before: Kept | undefined, { type, data }: SessionEvent, position: Position): Kept | null {
  switch (type) {
    case 'sessions.SessionCreated.v1':
      return { ...data, seen_at: data.first_seen_at, position: String(position), visits: [data.visit_id] };
    case 'sessions.SessionKept.v1':
      return data;
    case 'sessions.SessionVisited.v1': {
      if (before === undefined) return null;
      const { visit_id, seen_at } = data;
      const last = seen_at > before.seen_at ? seen_at : before.seen_at;
      return { ...before, visit_id, seen_at: last, visits: [...before.visits, visit_id] };
    }
  }
}

/** Reads which sessions a tab's stream holds, and when they began. */
export async function readTabSessions(
  store: EventStore,
  stream: string,
  erased: ReadonlySet<string>,
): Promise<LeftTab> {
  const { sessions, last } = await readSessions(store, stream);
  return leftOf([...sessions.values()], erased, last);
}

const leftOf = (sessions: readonly Kept[], erased: ReadonlySet<string>, last: LeftTab['last']): LeftTab => ({
  sessionIds: new Set(sessions.map(({ session_id }) => session_id)),
  visits: sessions.reduce(
    (sum, { session_id, visits }) => sum + (erased.has(session_id) ? visits.length : 0),
    0,
  ),
  hours: sessions.map(({ tracker_id, first_seen_at }) => [tracker_id, first_seen_at.slice(0, 13)] as const),
  last,
});

/** An event is some six kilobytes at most. */
const SESSIONS_PER_APPEND = 50;

/**
 * Appends to the tab's next stream what this one holds of sessions that are not erased. Nobody else appends there before this one is
 * deleted. Idempotent: a repeat appends only what has changed since.
 * @throws WrongExpectedRevision if another erasure does the same, and the port's other errors
 */
export async function keepOtherSessions(
  store: EventStore,
  stream: string,
  erased: ReadonlySet<string>,
  context: CommandContext,
): Promise<LeftTab> {
  const { sessions, last } = await readSessions(store, stream);
  const next = nextTabStream(stream);
  const known = await readSessions(store, next);
  const wanted = [...sessions.values()].filter(
    ({ session_id, visit_id }) =>
      !erased.has(session_id) && known.sessions.get(session_id)?.visit_id !== visit_id,
  );
  let revision = known.last?.revision ?? null;
  for (const chunk of inChunks(wanted, SESSIONS_PER_APPEND)) {
    // The port hides each with its session.
    const events = chunk.flatMap((session) =>
      toNewEvents(
        sessionEvents,
        [
          {
            type: 'sessions.SessionKept.v1',
            data: { ...session, visits: session.visits.slice(-MAX_TAB_EVENTS) },
          },
        ],
        { ...context, partnerId: session.partner_id, expiresAt: session.expires_at },
      ),
    );
    revision = (await appendSafely(store, next, revision ?? 'no_stream', events)).revision;
  }
  return leftOf([...sessions.values()], erased, last);
}
