import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { DAY, MINUTE } from '../../domain/kernel/time.ts';
import { expiredStream } from '../../domain/sessions/events.ts';
import { type Key, manualClock, NOON, startApi, type TestApi } from '../support/api.ts';
import { codeOf, collect, feed, makeTracker } from '../support/tracking.ts';

const clock = manualClock();
const ROOM = { CAPTURES_PER_SECOND: '100000', CAPTURES_PER_SECOND_PER_TRACKER: '100000' };
let api: TestApi;
let key: Key;
let tracker: string;
beforeAll(async () => {
  api = await startApi({ clock, env: { ...ROOM, CAPTURES_PER_SECOND_PER_VISITOR: '100000' } });
  key = await api.key();
  tracker = await makeTracker(api, key, { customer_reference: 'c-42' });
});
afterAll(() => api.close());

const get = (by: Key, url: string) => api.inject(by, { method: 'GET', url });
const preview = (by: Key, id: unknown) => get(by, `/v1/sessions/${id}`);
const captures = async (of: string, count: number) => {
  for (let n = 0; n < count; n += 1) await collect(api, of, { body: { custom: { n } } });
};
const labels = (page: Awaited<ReturnType<typeof feed>>) =>
  page.sessions.map(({ custom }) => (custom as { n: number }).n);

describe('a session', () => {
  it('is previewed as it stands in the feed', async () => {
    const token = randomUUID();
    await collect(api, tracker, { body: { token, custom: { plan: 'a' } } });
    clock.advance(5 * MINUTE);
    await collect(api, tracker, { body: { token, custom: { plan: 'b' } } });
    const { sessions } = await feed(api, key);
    expect(sessions).toEqual([
      {
        session_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        tracker_id: tracker,
        customer_reference: 'c-42',
        custom: { plan: 'a' },
        visitor_country: 'US',
        first_seen_at: new Date(NOON).toISOString(),
        last_seen_at: new Date(NOON + 5 * MINUTE).toISOString(),
        expires_at: new Date(NOON + 30 * DAY).toISOString(),
      },
    ]);
    const answer = await preview(key, sessions[0]?.session_id);
    expect(answer.statusCode).toBe(200);
    expect(answer.json()).toEqual({ ...sessions[0], request_id: answer.headers['x-request-id'] });
    expect(answer.headers['cache-control']).toBe('no-store');
  });

  it('is there as soon as its capture was answered', async () => {
    const mine = await makeTracker(api, key);
    await collect(api, mine);
    const { rows } = await api.sql.query(
      `select data->>'session_id' as id from eventlog.event where data->>'tracker_id' = $1 and type like 'sessions.%'`,
      [mine],
    );
    expect((await preview(key, rows[0].id)).statusCode).toBe(200);
  });

  it('is the partner’s own', async () => {
    const { sessions } = await feed(api, key);
    const other = await api.key();
    const answer = await preview(other, sessions[0]?.session_id);
    expect([answer.statusCode, codeOf(answer)]).toEqual([404, 'session_not_found']);
    expect((await feed(api, other)).sessions).toEqual([]);
    const filtered = await get(other, `/v1/sessions?tracker_id=${tracker}`);
    expect([filtered.statusCode, codeOf(filtered)]).toEqual([404, 'tracker_not_found']);
  });

  test.each<[string, string, number, string]>([
    ['an id that is none', '/v1/sessions/abc', 404, 'session_not_found'],
    ['an unknown id', `/v1/sessions/${randomUUID()}`, 404, 'session_not_found'],
    ['a query', `/v1/sessions/${randomUUID()}?x=1`, 400, 'invalid_query'],
    ['a query before an id that is none', '/v1/sessions/abc?x=1', 400, 'invalid_query'],
  ])('is refused for %s', async (_what, url, status, code) => {
    const answer = await get(key, url);
    expect([answer.statusCode, codeOf(answer)]).toEqual([status, code]);
  });

  it('of a deleted tracker stays readable', async () => {
    const mine = await makeTracker(api, key);
    await collect(api, mine);
    await api.inject(key, { method: 'POST', url: `/v1/trackers/${mine}/delete` });
    const { sessions } = await feed(api, key, `tracker_id=${mine}`);
    expect(sessions).toHaveLength(1);
    expect((await preview(key, sessions[0]?.session_id)).statusCode).toBe(200);
  });

  it('counts as expired once the key of its day is lost', async () => {
    const mine = await makeTracker(api, key);
    await collect(api, mine, { body: { custom: { plan: 'a' } } });
    const [session] = (await feed(api, key, `tracker_id=${mine}`)).sessions;
    await api.sql.query(
      `update read.session set sealed = 'bm90IHNlYWxlZCBieSB0aGlzIGtleQ==' where tracker_id = $1`,
      [mine],
    );
    expect((await feed(api, key, `tracker_id=${mine}`)).sessions).toEqual([]);
    const answer = await preview(key, session?.session_id);
    expect([answer.statusCode, codeOf(answer)]).toEqual([410, 'session_expired']);
  });
});

describe('the feed', () => {
  it('is paged, oldest first, and goes on where it ended', async () => {
    const mine = await makeTracker(api, key);
    await captures(mine, 5);
    const first = await feed(api, key, `tracker_id=${mine}&limit=2`);
    expect([labels(first), first.has_more]).toEqual([[0, 1], true]);
    const second = await feed(api, key, `tracker_id=${mine}&limit=2&cursor=${first.next_cursor}`);
    expect([labels(second), second.has_more]).toEqual([[2, 3], true]);
    const third = await feed(api, key, `tracker_id=${mine}&limit=2&cursor=${second.next_cursor}`);
    expect([labels(third), third.has_more]).toEqual([[4], false]);
    const empty = await feed(api, key, `tracker_id=${mine}&cursor=${third.next_cursor}`);
    expect([labels(empty), empty.has_more, empty.next_cursor]).toEqual([[], false, third.next_cursor]);
    await collect(api, mine, { body: { custom: { n: 5 } } });
    const later = await feed(api, key, `tracker_id=${mine}&cursor=${empty.next_cursor}`);
    expect([labels(later), later.has_more]).toEqual([[5], false]);
    // A page that is exactly full has no more.
    expect((await feed(api, key, `tracker_id=${mine}&limit=6`)).has_more).toBe(false);
  });

  it('has a cursor also where there is nothing yet', async () => {
    const mine = await makeTracker(api, key);
    const empty = await feed(api, key, `tracker_id=${mine}`);
    expect([empty.sessions, empty.has_more]).toEqual([[], false]);
    await captures(mine, 1);
    expect(labels(await feed(api, key, `tracker_id=${mine}&cursor=${empty.next_cursor}`))).toEqual([0]);
  });

  it('has at most 100 on a page, 50 by default', async () => {
    const mine = await makeTracker(api, key);
    await Promise.all(Array.from({ length: 120 }, () => collect(api, mine)));
    expect((await feed(api, key, `tracker_id=${mine}`)).sessions).toHaveLength(50);
    expect((await feed(api, key, `tracker_id=${mine}&limit=100`)).sessions).toHaveLength(100);
  });

  it('takes a cursor from its own list alone', async () => {
    const [mine, other] = [await makeTracker(api, key), await makeTracker(api, key)];
    await captures(mine, 2);
    const filtered = (await feed(api, key, `tracker_id=${mine}&limit=1`)).next_cursor;
    const all = (await feed(api, key, 'limit=1')).next_cursor;
    const stranger = await api.key();
    const refused = async (by: Key, query: string) => {
      const answer = await get(by, `/v1/sessions?${query}`);
      return `${answer.statusCode} ${codeOf(answer)}`;
    };
    for (const [by, query] of [
      [key, `cursor=${filtered}`],
      [key, `tracker_id=${other}&cursor=${filtered}`],
      [key, `tracker_id=${mine}&cursor=${all}`],
      [stranger, `cursor=${all}`],
      [key, 'cursor='],
      [key, 'cursor=abc'],
      [key, `cursor=${all.slice(0, -1)}`],
      [key, `cursor=${all}=`],
      [key, `cursor=${all}AAAA`],
      [key, `cursor=${all.slice(0, 11)}${all[11] === 'A' ? 'B' : 'A'}${all.slice(12)}`],
      [key, `cursor=${'A'.repeat(32)}`],
    ] as const) {
      expect([query, await refused(by, query)]).toEqual([query, '400 invalid_cursor']);
    }
    // The second key of a partner continues the list that the first has read.
    const second = await api.key({}, key.partner_id);
    expect(labels(await feed(api, second, `tracker_id=${mine}&cursor=${filtered}`))).toEqual([1]);
  });

  test.each<[string, string, number, string]>([
    ['another parameter', 'x=1', 400, 'invalid_query'],
    ['a parameter twice', 'limit=1&limit=1', 400, 'invalid_query'],
    ['a parameter of every object', '__proto__=1', 400, 'invalid_query'],
    ['a limit of 0', 'limit=0', 400, 'invalid_query'],
    ['a limit of 101', 'limit=101', 400, 'invalid_query'],
    ['a limit that is no number', 'limit=ten', 400, 'invalid_query'],
    ['a limit that is not whole', 'limit=1.0', 400, 'invalid_query'],
    ['an empty limit', 'limit=', 400, 'invalid_query'],
    ['a tracker that is none', 'tracker_id=abc', 400, 'invalid_tracker'],
    ['an unknown tracker', `tracker_id=${randomUUID()}`, 404, 'tracker_not_found'],
    [
      'a wrong cursor before an unknown tracker',
      `tracker_id=${randomUUID()}&cursor=x`,
      400,
      'invalid_cursor',
    ],
  ])('is refused for %s', async (_what, query, status, code) => {
    const answer = await get(key, `/v1/sessions?${query}`);
    expect([answer.statusCode, codeOf(answer)]).toEqual([status, code]);
  });

  it('misses nothing and repeats nothing while sessions are being captured', async () => {
    const by = await api.key();
    const [one, other] = [await makeTracker(api, by), await makeTracker(api, by)];
    let writing = true;
    const write = async (writer: number) => {
      for (let n = 0; n < 40; n += 1) {
        const answer = await collect(api, n % 2 === 0 ? one : other, {
          body: { custom: { n: writer * 1_000 + n } },
        });
        expect(answer.statusCode).toBe(204);
      }
    };
    const read = async () => {
      const seen: number[] = [];
      let cursor = '';
      for (let last = false; ; last = !writing) {
        const page = await feed(api, by, `limit=7${cursor}`);
        seen.push(...labels(page));
        cursor = `&cursor=${page.next_cursor}`;
        if (last && !page.has_more) return seen;
      }
    };
    const readers = Promise.all([read(), read(), read()]);
    await Promise.all([0, 1, 2, 3].map(write));
    writing = false;
    const written = [0, 1, 2, 3].flatMap((writer) =>
      Array.from({ length: 40 }, (_, n) => writer * 1_000 + n),
    );
    for (const seen of await readers) expect(seen.toSorted((a, b) => a - b)).toEqual(written);
  });
});

describe('a session that expires', () => {
  it('leaves the feed, is answered as gone for 60 days and then as unknown', async () => {
    const by = await api.key();
    const mine = await makeTracker(api, by);
    await collect(api, mine);
    const { sessions, next_cursor } = await feed(api, by);
    const id = sessions[0]?.session_id;
    const answered = async () => {
      const answer = await preview(by, id);
      return codeOf(answer) ?? answer.statusCode;
    };
    const expiry = clock.now() + 30 * DAY;

    clock.set(expiry - 1);
    expect([await answered(), (await feed(api, by)).sessions.length]).toEqual([200, 1]);
    clock.set(expiry);
    expect([await answered(), (await feed(api, by)).sessions.length]).toEqual(['session_expired', 0]);
    expect(codeOf(await preview(key, id))).toBe('session_not_found');
    await collect(api, mine);
    expect((await feed(api, by, `cursor=${next_cursor}`)).sessions).toHaveLength(1);

    // By the clock alone, and once the row has made way for the bare id.
    clock.set(expiry + 60 * DAY - 1);
    expect(await answered()).toBe('session_expired');
    const data = { partner_id: by.partner_id, sessions: [[id, new Date(expiry).toISOString()]] };
    const metadata = { $correlationId: 'c', $causationId: 'c', at: new Date(clock.now()).toISOString() };
    const event = { id: randomUUID(), type: 'sessions.SessionsExpired.v1', data, metadata };
    await api.runtime.store.append(expiredStream(by.partner_id, '2026-06-12'), 'no_stream', [event]);
    await feed(api, by);
    expect(await answered()).toBe('session_expired');
    expect(codeOf(await preview(key, id))).toBe('session_not_found');
    const { rows } = await api.sql.query('select 1 from read.session where session_id = $1', [id]);
    expect(rows).toEqual([]);
    clock.set(expiry + 60 * DAY);
    expect(await answered()).toBe('session_not_found');
  });
});
