import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DAY, isoTime, MINUTE, utcDay } from '../../domain/kernel/time.ts';
import type { SessionEvent } from '../../domain/sessions/events.ts';
import { type Tab, tabDecider, tabStream, type Visit } from '../../domain/sessions/tab.ts';
import { given } from '../domain/deciding.ts';
import { ANNA, AT } from '../lookup/lookup-events.ts';

const TRACKER = '33333333-3333-4333-8333-333333333333';
const id = (nth: number) => `${String(nth).padStart(8, '0')}-0000-4000-8000-000000000000`;
/** The digest of an address under a day's key. */
const digest = (day: string, ip: string) => `${ip} on ${day}`;

/** Days before a visit on which sessions of its tab may have begun; one by a clock a year ahead. */
const DAYS = [...Array.from({ length: 40 }, (_, days) => days), -365];

interface VisitValues {
  readonly nth: number;
  readonly ip?: string;
  readonly country?: string | null;
  readonly at?: number;
  /** Days whose keys are destroyed. */
  readonly gone?: readonly string[];
}

const visit = ({ nth, ip = 'a', country = 'DE', at = AT, gone = [] }: VisitValues): Visit => ({
  type: 'Visit',
  visit_id: id(nth),
  tracker_id: TRACKER,
  partner_id: ANNA,
  visitor_country: country,
  visitors: new Map(
    DAYS.map((days) => utcDay(at - days * DAY)).flatMap((day) =>
      gone.includes(day) ? [] : [[day, digest(day, ip)] as const],
    ),
  ),
  session: { session_id: id(900 + nth), sealed: `sealed by visit ${nth}` },
  at,
});

const identity = ({ nth, ip = 'a', country = 'DE', at = AT }: VisitValues) => ({
  session_id: id(900 + nth),
  tracker_id: TRACKER,
  partner_id: ANNA,
  visitor: digest(utcDay(at), ip),
  visitor_country: country,
  first_seen_at: isoTime(at),
  expires_at: isoTime(at + 30 * DAY),
});
const created = (given: VisitValues): SessionEvent => ({
  type: 'sessions.SessionCreated.v1',
  data: { ...identity(given), visit_id: id(given.nth), sealed: `sealed by visit ${given.nth}` },
});
/** A visit in the session that another visit began. */
const visited = (nth: number, began: VisitValues, at: number): SessionEvent => ({
  type: 'sessions.SessionVisited.v1',
  data: { ...identity(began), visit_id: id(nth), seen_at: isoTime(at) },
});

describe('a visit', () => {
  const first = { nth: 1 };

  it('begins a session, for 30 days', () => {
    given(tabDecider, [])
      .when(visit(first))
      .thenEvents([created(first)]);
  });
  it('continues the session of the same address and country up to 30 minutes later', () => {
    const at = AT + 30 * MINUTE;
    given(tabDecider, [created(first)])
      .when(visit({ nth: 2, at }))
      .thenEvents([visited(2, first, at)]);
  });
  it('begins another session more than 30 minutes after the last visit', () => {
    const late = { nth: 3, at: AT + 50 * MINUTE + 1 };
    given(tabDecider, [created(first)])
      .when(visit(late))
      .thenEvents([created(late)]);
    given(tabDecider, [created(first), visited(2, first, AT + 20 * MINUTE)])
      .when(visit(late))
      .thenEvents([created(late)]);
    given(tabDecider, [created(first), visited(2, first, AT + 20 * MINUTE)])
      .when(visit({ ...late, at: late.at - 1 }))
      .thenEvents([visited(3, first, late.at - 1)]);
  });
  it.each([
    ['address', { nth: 2, ip: 'b' }],
    ['country', { nth: 2, country: 'FR' }],
    ['country, now unknown', { nth: 2, country: null }],
  ])('begins another session on a change of %s', (_what, changed) => {
    given(tabDecider, [created(first)])
      .when(visit(changed))
      .thenEvents([created(changed)]);
  });
  it('from an earlier address continues that session within 30 minutes, and not after', () => {
    const other = { nth: 2, ip: 'b', at: AT + 20 * MINUTE };
    given(tabDecider, [created(first), created(other)])
      .when(visit({ nth: 3, at: AT + 30 * MINUTE }))
      .thenEvents([visited(3, first, AT + 30 * MINUTE)]);
    const late = { nth: 3, at: AT + 31 * MINUTE };
    given(tabDecider, [created(first), created(other)])
      .when(visit(late))
      .thenEvents([created(late)]);
  });
  it('never continues an expired session', () => {
    const end = AT + 30 * DAY;
    const before = visited(2, first, end - MINUTE);
    given(tabDecider, [created(first), before])
      .when(visit({ nth: 3, at: end - 1 }))
      .thenEvents([visited(3, first, end - 1)]);
    const after = { nth: 3, at: end };
    given(tabDecider, [created(first), before])
      .when(visit(after))
      .thenEvents([created(after)]);
  });
  it('is matched across midnight by the key of the day on which its session began', () => {
    const eve = { nth: 1, at: Date.parse('2026-03-01T23:59:00.000Z') };
    const at = eve.at + 2 * MINUTE;
    given(tabDecider, [created(eve)])
      .when(visit({ nth: 2, at }))
      .thenEvents([visited(2, eve, at)]);
    given(tabDecider, [created(eve)])
      .when(visit({ nth: 2, at, gone: ['2026-03-01'] }))
      .thenEvents([created({ nth: 2, at })]);
  });
  it('is appended once', () => {
    given(tabDecider, [created(first)])
      .when(visit({ nth: 1, ip: 'b', at: AT + DAY }))
      .thenEvents([]);
  });
  it('continues a session that was kept in the tab\u2019s next stream, and none of its visits is appended again', () => {
    const kept: SessionEvent = {
      type: 'sessions.SessionKept.v1',
      data: {
        ...identity(first),
        visit_id: id(2),
        sealed: 'sealed by visit 1',
        seen_at: isoTime(AT + MINUTE),
        position: '7',
        visits: [id(1), id(2)],
      },
    };
    for (const nth of [1, 2]) {
      given(tabDecider, [kept])
        .when(visit({ nth, at: AT + MINUTE }))
        .thenEvents([]);
    }
    const at = AT + 31 * MINUTE;
    given(tabDecider, [kept])
      .when(visit({ nth: 3, at }))
      .thenEvents([visited(3, first, at)]);
  });
  it('by a slow clock continues the session and does not move its time back', () => {
    const slow = AT - MINUTE;
    given(tabDecider, [created(first)])
      .when(visit({ nth: 2, at: slow }))
      .thenEvents([visited(2, first, slow)]);
    const at = AT + 30 * MINUTE;
    given(tabDecider, [created(first), visited(2, first, slow)])
      .when(visit({ nth: 3, at }))
      .thenEvents([visited(3, first, at)]);
  });
  it('continues the session that a clock ahead by a year saw, until half an hour after the correction', () => {
    const ahead = { nth: 1, at: AT + 365 * DAY };
    given(tabDecider, [created(ahead)])
      .when(visit({ nth: 2, at: AT }))
      .thenEvents([visited(2, ahead, AT)]);
    const at = AT + 31 * MINUTE;
    given(tabDecider, [created(ahead), visited(2, ahead, AT)])
      .when(visit({ nth: 3, at }))
      .thenEvents([created({ nth: 3, at })]);
  });
});

describe('a tab', () => {
  const given = fc.record({
    nth: fc.integer({ min: 1, max: 30 }),
    ip: fc.constantFrom('a', 'b', 'c'),
    country: fc.constantFrom('DE', 'FR', null),
    at: fc.integer({ min: -40 * MINUTE, max: 31 * DAY }).map((ms) => AT + ms),
  });
  const having = (visits: readonly VisitValues[]): { state: Tab; events: SessionEvent[] } => {
    const events: SessionEvent[] = [];
    const state = visits.reduce((before: Tab, one) => {
      const decision = tabDecider.decide(visit(one), before);
      const made = decision.ok ? decision.value : [];
      events.push(...made);
      return made.reduce(tabDecider.evolve, before);
    }, tabDecider.initial);
    return { state, events };
  };

  it('ignores a repeated visit, whatever came before', () => {
    fc.assert(
      fc.property(fc.array(given, { maxLength: 40 }), given, (before, one) => {
        const { state } = having([...before, one]);
        expect(tabDecider.decide(visit({ ...one, at: one.at + MINUTE }), state)).toEqual({
          ok: true,
          value: [],
        });
      }),
    );
  });
  it('records each visit once, and visits only in sessions that it began', () => {
    fc.assert(
      fc.property(fc.array(given, { maxLength: 60 }), (visits) => {
        const { events } = having(visits);
        const ids = events.map(({ data }) => data.visit_id);
        expect(new Set(ids).size).toBe(ids.length);
        const begun = new Set<string>();
        for (const { type, data } of events) {
          if (type === 'sessions.SessionCreated.v1') begun.add(data.session_id);
          expect(begun.has(data.session_id)).toBe(true);
        }
      }),
    );
  });
  it('has a stream, and another one after that has expired', () => {
    expect([tabStream('x', 0), tabStream('x', 2)]).toEqual(['tab-x', 'tab-x-2']);
  });
});
