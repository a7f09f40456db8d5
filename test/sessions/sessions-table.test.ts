import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { isoTime, MINUTE } from '../../domain/kernel/time.ts';
import { expiredStream } from '../../domain/sessions/events.ts';
import type { EventMetadata, Position, RecordedEvent } from '../../event-store/port.ts';
import { sessions } from '../../projections/sessions/sessions.ts';
import { AT } from '../lookup/lookup-events.ts';
import { startTestStack, type TestStack } from '../support/test-stack.ts';

let stack: TestStack;
let db: pg.Client;
beforeAll(async () => {
  stack = await startTestStack();
  db = await stack.session('set search_path to read');
});
beforeEach(() => db.query('truncate session, expired_session'));
afterAll(() => stack.close());

const partner_id = randomUUID();
const session = (first = AT) => ({
  session_id: randomUUID(),
  tracker_id: randomUUID(),
  partner_id,
  visitor: 'digest',
  visitor_country: 'DE',
  first_seen_at: isoTime(first),
  expires_at: isoTime(first + 30 * 86_400_000),
});
type Session = ReturnType<typeof session>;
const created = (of: Session) => ({
  type: 'sessions.SessionCreated.v1',
  data: { ...of, visit_id: randomUUID(), sealed: 'sealed' },
});
const visited = (of: Session, at: number) => ({
  type: 'sessions.SessionVisited.v1',
  data: { ...of, visit_id: randomUUID(), seen_at: isoTime(at) },
});
const expired = (...of: Session[]) => ({
  type: 'sessions.SessionsExpired.v1',
  data: { partner_id, sessions: of.map(({ session_id, expires_at }) => [session_id, expires_at]) },
});

const metadata: EventMetadata = { $correlationId: 'c', $causationId: 'c', at: isoTime(AT) };
const log = (...events: { type: string; data: object }[]): RecordedEvent[] =>
  events.map((event, index) => ({
    ...event,
    id: randomUUID(),
    metadata,
    stream: event.type === 'sessions.SessionsExpired.v1' ? expiredStream(partner_id, '2026-04-13') : 'tab-x',
    revision: index,
    position: BigInt(100 + index) as Position,
  }));
const rows = async () => ({
  sessions: (await db.query('select * from session order by position')).rows,
  expired: (await db.query('select * from expired_session order by session_id')).rows,
});
/** Applies all events in one batch, then one by one, then in two batches of which the second comes twice. */
const applied = async (events: readonly RecordedEvent[]) => {
  await sessions.apply(events, db);
  const atOnce = await rows();
  await sessions.apply(events, db);
  expect(await rows(), 'delivered twice').toEqual(atOnce);
  await db.query('truncate session, expired_session');
  for (const event of events) await sessions.apply([event], db);
  expect(await rows(), 'one by one').toEqual(atOnce);
  return atOnce;
};

describe('the read model of sessions', () => {
  it('follows sessions and their visits', async () => {
    const [a, b] = [session(), session(AT + MINUTE)];
    const events = log(created(a), created(b), visited(a, AT + 2 * MINUTE), visited(b, AT + 3 * MINUTE));
    const { sessions: found } = await applied(events);
    expect(found).toMatchObject([
      {
        session_id: a.session_id,
        tracker_id: a.tracker_id,
        partner_id,
        visitor_country: 'DE',
        sealed: 'sealed',
        first_seen_at: new Date(AT),
        last_seen_at: new Date(AT + 2 * MINUTE),
        expires_at: new Date(a.expires_at),
        position: '100',
        stream: 'tab-x',
        last_revision: 2,
        last_position: '102',
      },
      { session_id: b.session_id, position: '101', last_revision: 3, last_position: '103' },
    ]);
  });

  it('never moves a time back when a clock was slow', async () => {
    const a = session();
    const late = AT + 20 * MINUTE;
    const { sessions: found } = await applied(log(created(a), visited(a, late), visited(a, AT - MINUTE)));
    expect(found).toMatchObject([{ last_seen_at: new Date(late), last_revision: 2, last_position: '102' }]);
  });

  it('keeps only the id of an expired session', async () => {
    const [a, b] = [session(), session()];
    const found = await applied(log(created(a), created(b), visited(a, AT + MINUTE), expired(a)));
    expect(found).toMatchObject({
      sessions: [{ session_id: b.session_id }],
      expired: [{ session_id: a.session_id, partner_id, expired_at: new Date(a.expires_at) }],
    });
  });

  it('lists an expired session of which nothing else is left', async () => {
    const [a, b] = [session(), session()];
    expect(await applied(log(expired(a, b), expired(a)))).toMatchObject({ sessions: [], expired: [{}, {}] });
  });
});

describe('a page of the feed', () => {
  /** Half of the sessions belong to one tracker, the others to many. */
  const fill = (count: number, of: Session) =>
    db.query(
      `insert into session select gen_random_uuid(), case when n % 100 = 0 then gen_random_uuid() else $2::uuid end,
         case when n % 2 = 0 then gen_random_uuid() else $3::uuid end, 'DE', 'x', $4, $4, $5, n, 'tab-' || n, 0, n
       from generate_series(1, $1::int) n`,
      [count, partner_id, of.tracker_id, of.first_seen_at, of.expires_at],
    );

  it('is found by its cursor, however many sessions there are', async () => {
    const of = session();
    await fill(20_000, of);
    await db.query('analyze session');
    for (const whose of [`partner_id = '${partner_id}'`, `tracker_id = '${of.tracker_id}'`]) {
      const { rows: plan } = await db.query(
        `explain (analyze, format json) select * from session s where ${whose} and position > 10000
           and expires_at > '${of.first_seen_at}' order by position limit 101`,
      );
      const text = JSON.stringify(plan);
      expect(text).toMatch(/Index Scan/);
      expect(text).not.toMatch(/"Sort"|Seq Scan|Bitmap/);
    }
  });
});
