import { accept, type Decider, unreachable } from '../kernel/decider.ts';
import { DAY, isAhead, isoTime, MINUTE, notAhead, utcDay } from '../kernel/time.ts';
import { type SessionEvent, TAB_PREFIX } from './events.ts';

/** A session of the tab, as of its last known event. */
export interface KnownSession {
  readonly session_id: string;
  /** Digest of the visitor's address under the key of the day of `first_seen_at`. */
  readonly visitor: string;
  readonly visitor_country: string | null;
  readonly first_seen_at: string;
  readonly expires_at: string;
  /** Milliseconds. */
  readonly last_seen_at: number;
}

/** The tab's last events: enough to find a visit's session and to recognize a repeated visit. */
export interface Tab {
  /** Least recently visited first. */
  readonly sessions: readonly KnownSession[];
  readonly visits: readonly string[];
}

export interface Visit {
  readonly type: 'Visit';
  readonly visit_id: string;
  readonly tracker_id: string;
  readonly partner_id: string;
  readonly visitor_country: string | null;
  /**
   * The visitor's address digested under the key of each UTC day on which a session of the tab, or this visit, began. A day whose
   * key is destroyed is missing.
   */
  readonly visitors: ReadonlyMap<string, string>;
  /** The session that this visit begins unless it continues one. */
  readonly session: { readonly session_id: string; readonly sealed: string };
  /** Milliseconds. */
  readonly at: number;
}

/** Number of a tab's last events that are read and remembered. */
export const MAX_TAB_EVENTS = 64;
/** A token that was not seen for this long starts a new session. */
const RENEWED_AFTER_MS = 30 * MINUTE;
/** Session and receipt access. */
const ACCESS_MS = 30 * DAY;

/** Returns whether visits of the tab, from a fast clock, lie ahead of `at` (milliseconds). */
export const hasVisitsAhead = ({ sessions }: Tab, at: number): boolean =>
  sessions.some(({ last_seen_at }) => isAhead(last_seen_at, at));

/** Finds the session that this visit continues: same visitor and country, seen recently. */
const continued = ({ sessions }: Tab, visit: Visit): KnownSession | undefined =>
  sessions.findLast(
    (session) =>
      session.visitor_country === visit.visitor_country &&
      visit.at - notAhead(session.last_seen_at, visit.at) <= RENEWED_AFTER_MS &&
      visit.at < Date.parse(session.expires_at) &&
      session.visitor === visit.visitors.get(session.first_seen_at.slice(0, 10)),
  );

function begun(visit: Visit): SessionEvent {
  const { visit_id, tracker_id, partner_id, visitor_country, at } = visit;
  const { session_id, sealed } = visit.session;
  const visitor = visit.visitors.get(utcDay(at));
  if (visitor === undefined) throw new TypeError('a visit of a day whose key is gone');
  return {
    type: 'sessions.SessionCreated.v1',
    data: {
      session_id,
      tracker_id,
      partner_id,
      visit_id,
      visitor,
      visitor_country,
      first_seen_at: isoTime(at),
      expires_at: isoTime(at + ACCESS_MS),
      sealed,
    },
  };
}

/** Decides the sessions of one browser tab: same token, address and country (contract, Pixel 6). */
export const tabDecider: Decider<Tab, Visit, SessionEvent, never> = {
  initial: { sessions: [], visits: [] },

  decide(visit, state) {
    const { visit_id, tracker_id, partner_id, at } = visit;
    if (state.visits.includes(visit_id)) return accept([]);
    const session = continued(state, visit);
    if (session === undefined) return accept([begun(visit)]);
    const { last_seen_at: _, ...identity } = session;
    return accept([
      {
        type: 'sessions.SessionVisited.v1',
        data: { ...identity, tracker_id, partner_id, visit_id, seen_at: isoTime(at) },
      },
    ]);
  },

  evolve(state, event) {
    switch (event.type) {
      case 'sessions.SessionCreated.v1':
        return afterVisit(state, event.data, event.data.first_seen_at);
      case 'sessions.SessionVisited.v1':
        return afterVisit(state, event.data, event.data.seen_at);
      case 'sessions.SessionKept.v1': {
        const visits = [...state.visits, ...event.data.visits].slice(-MAX_TAB_EVENTS);
        return { ...afterVisit(state, event.data, event.data.seen_at), visits };
      }
      default:
        return unreachable(event);
    }
  },
};

function afterVisit(state: Tab, data: SessionEvent['data'], seen_at: string): Tab {
  const { session_id, visitor, visitor_country, first_seen_at, expires_at, visit_id } = data;
  const before = state.sessions.find((session) => session.session_id === session_id);
  // Never moves back, because clocks of processes differ, unless the later time is from a fast clock.
  const seen = Date.parse(seen_at);
  const last_seen_at = Math.max(seen, notAhead(before?.last_seen_at ?? 0, seen));
  const session = { session_id, visitor, visitor_country, first_seen_at, expires_at, last_seen_at };
  return {
    sessions: [...state.sessions.filter((known) => known !== before), session].slice(-MAX_TAB_EVENTS),
    visits: [...state.visits, visit_id].slice(-MAX_TAB_EVENTS),
  };
}

/** `generation`: number of expired streams of this tab. */
export const tabStream = (tabId: string, generation: number): string =>
  generation === 0 ? `${TAB_PREFIX}${tabId}` : `${TAB_PREFIX}${tabId}-${generation}`;

const UUID_LENGTH = 36;

/** Returns the next generation's stream of a tab. */
export function nextTabStream(stream: string): string {
  const tab = stream.slice(TAB_PREFIX.length);
  const generation = Number(tab.slice(UUID_LENGTH + 1));
  return tabStream(tab.slice(0, UUID_LENGTH), generation + 1);
}
