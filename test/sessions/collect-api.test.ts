import { randomUUID } from 'node:crypto';
import type { InjectOptions } from 'fastify';
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import { OutcomeUnknown } from '../../event-store/port.ts';
import { type Key, manualClock, startApi, type TestApi } from '../support/api.ts';
import { faultyStore } from '../support/faulty-store.ts';
import { codeOf, collect, feed, makeTracker, PAGE, type Sent } from '../support/tracking.ts';

const clock = manualClock();
const faults = faultyStore();
let api: TestApi;
let key: Key;
let tracker: string;
beforeAll(async () => {
  api = await startApi({ clock, aroundStore: faults.around });
  key = await api.key();
  tracker = await makeTracker(api, key);
});
afterAll(() => api.close());
// After the rates that the test before has spent.
beforeEach(() => clock.advance(2_000));

const allowedOrigin = (answer: { headers: Readonly<Record<string, unknown>> }) =>
  answer.headers['access-control-allow-origin'];

describe('a capture', () => {
  it('is taken as text and as JSON, and makes one session of one tab', async () => {
    const mine = await makeTracker(api, key);
    const token = randomUUID();
    const text = await collect(api, mine, { body: { token, custom: { plan: 'a', step: 1 } } });
    const json = await collect(api, mine, {
      body: { token, custom: { plan: 'b' } },
      headers: { 'content-type': 'application/json' },
    });
    for (const answer of [text, json]) {
      expect([answer.statusCode, answer.body]).toEqual([204, '']);
      expect(answer.headers).toMatchObject({ 'access-control-allow-origin': PAGE, vary: 'origin' });
      expect(answer.headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
    }
    expect((await feed(api, key, `tracker_id=${mine}`)).sessions).toMatchObject([
      { tracker_id: mine, custom: { plan: 'a', step: 1 }, visitor_country: 'US' },
    ]);
  });

  it('is written once, however often it is sent, and whatever the case of its ids', async () => {
    const mine = await makeTracker(api, key);
    const body = { token: randomUUID(), visit_id: randomUUID() };
    await collect(api, mine, { body });
    const upper = { token: body.token.toUpperCase(), visit_id: body.visit_id.toUpperCase() };
    await collect(api, mine, { body: { ...upper, tracker_id: mine.toUpperCase() } });
    const { rows } = await api.sql.query(`select type from eventlog.event where data->>'tracker_id' = $1`, [
      mine,
    ]);
    expect(rows.filter(({ type }) => type.startsWith('sessions.'))).toHaveLength(1);
  });

  it('of another address or country is of another session', async () => {
    const mine = await makeTracker(api, key);
    const token = randomUUID();
    for (const ip of ['8.8.8.8', '85.214.1.1', '10.0.0.7, 127.0.0.1']) {
      await collect(api, mine, { body: { token }, ip });
    }
    const { sessions } = await feed(api, key, `tracker_id=${mine}`);
    expect(sessions.map(({ visitor_country }) => visitor_country)).toEqual(['US', 'DE', null]);
  });

  it.each([
    ['a prefetch', { 'sec-purpose': 'prefetch;prerender' }],
    ['a crawler', { 'user-agent': 'Mozilla/5.0 (compatible; bingbot/2.0)' }],
  ])('of %s is taken and makes no session', async (_what, headers) => {
    const mine = await makeTracker(api, key);
    const answer = await collect(api, mine, { headers });
    expect([answer.statusCode, allowedOrigin(answer)]).toEqual([204, PAGE]);
    expect((await feed(api, key, `tracker_id=${mine}`)).sessions).toEqual([]);
  });

  it('is collected from every subdomain of a wildcard, and not from the apex', async () => {
    const mine = await makeTracker(api, key, { origins: ['https://*.example.org'] });
    const from = async (origin: string) => (await collect(api, mine, { headers: { origin } })).statusCode;
    expect(await from('https://a.b.example.org')).toBe(204);
    expect(await from('https://example.org')).toBe(403);
    expect(await from('https://evilexample.org')).toBe(403);
    expect(await from('https://a.example.org:8443')).toBe(403);
  });

  it('right after its tracker was disabled, enabled and deleted knows of it', async () => {
    const mine = await makeTracker(api, key);
    const change = (method: 'DELETE' | 'POST', path: string) =>
      api.inject(key, { method, url: `/v1/trackers/${mine}${path}` });
    expect((await collect(api, mine)).statusCode).toBe(204);
    await change('DELETE', '');
    expect(codeOf(await collect(api, mine))).toBe('tracker_origin_denied');
    await change('POST', '/enable');
    expect((await collect(api, mine)).statusCode).toBe(204);
    await change('POST', '/delete');
    expect(codeOf(await collect(api, mine))).toBe('tracker_deleted');
  });
});

type Case = [what: string, sent: Sent, status: number, code: string];

describe('a capture is refused', () => {
  const big = `{"custom":"${'x'.repeat(8_192)}"}`;
  const cases: Case[] = [
    [
      'an encoding before a type',
      { headers: { 'content-encoding': 'gzip', 'content-type': 'x' } },
      415,
      'unsupported_encoding',
    ],
    [
      'a type before a size',
      { headers: { 'content-type': 'text/html' }, body: big },
      415,
      'unsupported_media_type',
    ],
    [
      'another charset',
      { headers: { 'content-type': 'text/plain; charset=latin1' } },
      415,
      'unsupported_media_type',
    ],
    ['no type', { headers: { 'content-type': undefined } }, 415, 'unsupported_media_type'],
    ['a size before bad JSON', { body: big.slice(1) }, 413, 'body_too_large'],
    ['an empty body', { body: '' }, 400, 'invalid_json'],
    ['bad JSON', { body: '{' }, 400, 'invalid_json'],
    ['a query', { query: '?x=1' }, 400, 'invalid_query'],
    ['a list', { body: '[]' }, 400, 'invalid_capture'],
    ['null', { body: 'null' }, 400, 'invalid_capture'],
    ['no token', { body: { token: undefined } }, 400, 'invalid_capture'],
    ['a token that is none', { body: { token: 'abc' } }, 400, 'invalid_capture'],
    ['a visit that is a number', { body: { visit_id: 1 } }, 400, 'invalid_capture'],
    ['a tracker that is none', { body: { tracker_id: 'abc' } }, 400, 'invalid_capture'],
    ['another property', { body: { url: 'https://www.example.com/' } }, 400, 'invalid_capture'],
    ['a property of every object', { body: '{"__proto__":{}}' }, 400, 'invalid_capture'],
    ['a wrong shape before wrong labels', { body: { x: 1, custom: null } }, 400, 'invalid_capture'],
    ['labels that are null', { body: { custom: null } }, 400, 'invalid_custom_parameters'],
    ['nested labels', { body: { custom: { a: {} } } }, 400, 'invalid_custom_parameters'],
    [
      'wrong labels before an unknown tracker',
      { body: { tracker_id: randomUUID(), custom: [] } },
      400,
      'invalid_custom_parameters',
    ],
    ['an unknown tracker', { body: { tracker_id: randomUUID() } }, 404, 'tracker_not_found'],
    [
      'an unknown tracker before a foreign host',
      { body: { tracker_id: randomUUID() }, headers: { host: 'x' } },
      404,
      'tracker_not_found',
    ],
    [
      'a foreign host before a foreign page',
      { headers: { host: 'cdn.example.com', origin: 'https://x.org' } },
      403,
      'untrusted_collector',
    ],
    ['a foreign page', { headers: { origin: 'https://example.com' } }, 403, 'tracker_origin_denied'],
    ['no page', { headers: { origin: undefined } }, 403, 'tracker_origin_denied'],
    ['a page without an origin', { headers: { origin: 'null' } }, 403, 'tracker_origin_denied'],
  ];
  test.each(cases)('for %s', async (_what, sent, status, code) => {
    const answer = await collect(api, tracker, sent);
    expect([answer.statusCode, codeOf(answer)]).toEqual([status, code]);
    expect(answer.json().request_id).toBe(answer.headers['x-request-id']);
  });

  it('and counted by its reason', async () => {
    const counted = async () => {
      const { values } = await api.metrics.captures.get();
      return values.find(({ labels }) => labels.reason === 'untrusted_collector')?.value ?? 0;
    };
    const before = await counted();
    await collect(api, tracker, { headers: { host: '127.0.0.1:3000' } });
    expect(await counted()).toBe(before + 1);
  });

  it('for its method, and both that there are are named', async () => {
    const answer = await api.app.inject({ method: 'GET', url: '/tracking/collect' });
    expect([answer.statusCode, answer.headers.allow]).toEqual([405, 'POST, OPTIONS']);
  });

  it('as deleted before anything about its host or page', async () => {
    const mine = await makeTracker(api, key);
    await api.inject(key, { method: 'POST', url: `/v1/trackers/${mine}/delete` });
    const answer = await collect(api, mine, { headers: { host: 'x', origin: 'https://x.org' } });
    expect([answer.statusCode, codeOf(answer)]).toEqual([410, 'tracker_deleted']);
  });

  it.each<[string, Sent, string | undefined]>([
    ['of the tracker', { headers: { host: 'x' } }, PAGE],
    ['of the tracker, whatever is wrong', { body: { visit_id: 7 } }, PAGE],
    ['of no partner', { headers: { origin: 'https://x.org' } }, undefined],
    ['of the tracker, which the body does not name', { body: '{' }, undefined],
  ])('readably for pages %s', async (_what, sent, expected) => {
    const answer = await collect(api, tracker, sent);
    expect(answer.statusCode).toBeGreaterThanOrEqual(400);
    expect(allowedOrigin(answer)).toBe(expected);
  });

  it('as unavailable when it is not known to be written, and may be sent again', async () => {
    const mine = await makeTracker(api, key);
    const body = { token: randomUUID(), visit_id: randomUUID() };
    faults.failAppends('tab-', () => new OutcomeUnknown('no answer'));
    const unsure = await collect(api, mine, { body });
    faults.heal();
    expect([unsure.statusCode, codeOf(unsure)]).toEqual([503, 'tracking_unavailable']);
    expect(unsure.headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect(allowedOrigin(unsure)).toBe(PAGE);
    expect((await collect(api, mine, { body })).statusCode).toBe(204);
    expect((await feed(api, key, `tracker_id=${mine}`)).sessions).toHaveLength(1);
  });
});

describe('the rate of captures', () => {
  const codes = async (captures: readonly Promise<Awaited<ReturnType<typeof collect>>>[]) =>
    (await Promise.all(captures)).map((answer) => codeOf(answer) ?? String(answer.statusCode));
  const times = (count: number, of: (n: number) => ReturnType<typeof collect>) =>
    Array.from({ length: count }, (_, n) => of(n));
  const count = (codes: readonly string[], code: string) => codes.filter((each) => each === code).length;

  it('is 10 a second for a visitor, before anything is looked at', async () => {
    const sent: Sent = { headers: { 'content-encoding': 'gzip' }, ip: '1.1.1.7' };
    expect(count(await codes(times(10, () => collect(api, tracker, sent))), 'unsupported_encoding')).toBe(10);
    const refused = await collect(api, tracker, sent);
    expect([refused.statusCode, codeOf(refused)]).toEqual([429, 'tracking_capacity']);
    expect(refused.headers['retry-after']).toBe('1');
    expect((await collect(api, tracker, { ip: '1.1.1.8' })).statusCode).toBe(204);
    clock.advance(1_000);
    expect((await collect(api, tracker, { ip: '1.1.1.7' })).statusCode).toBe(204);
  });

  it('is 10 a second for all addresses of an IPv6 /64 together, and of each other /64', async () => {
    clock.advance(1_000);
    const from = (network: string) =>
      codes(times(20, (n) => collect(api, tracker, { ip: `2a00:1450:4001:${network}::${n + 1}` })));
    expect(count(await from('a'), 'tracking_capacity')).toBe(10);
    expect(count(await from('b'), 'tracking_capacity')).toBe(10);
    clock.advance(1_000);
  });

  it('is 100 a second for a tracker, of those that it accepts', async () => {
    const mine = await makeTracker(api, key);
    const denied = times(50, (n) =>
      collect(api, mine, { ip: `1.1.2.${n}`, headers: { origin: 'https://x.org' } }),
    );
    expect(count(await codes(denied), 'tracker_origin_denied')).toBe(50);
    const outcomes = await codes(times(120, (n) => collect(api, mine, { ip: `1.1.3.${n}` })));
    expect([count(outcomes, '204'), count(outcomes, 'tracking_capacity')]).toEqual([100, 20]);
  });

  it('is 200 a second in all', async () => {
    const trackers = await Promise.all(Array.from({ length: 3 }, () => makeTracker(api, key)));
    clock.advance(1_000);
    const outcomes = await codes(
      times(240, (n) => collect(api, String(trackers[n % 3]), { ip: `1.2.${n % 3}.${n}` })),
    );
    expect([count(outcomes, '204'), count(outcomes, 'tracking_capacity')]).toEqual([200, 40]);
  });
});

describe('a preflight', () => {
  const ask = (origin: string | undefined, more: Partial<InjectOptions> = {}) =>
    api.app.inject({
      method: 'OPTIONS',
      url: '/tracking/collect',
      headers: {
        host: 'doorplate.test',
        ...(origin === undefined ? {} : { origin }),
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type',
      },
      ...more,
    });

  it('of a page of any enabled tracker is allowed what a capture needs', async () => {
    const answer = await ask(PAGE);
    expect([answer.statusCode, answer.body]).toEqual([204, '']);
    expect(answer.headers).toMatchObject({
      'access-control-allow-origin': PAGE,
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers': 'content-type',
      'access-control-max-age': '7200',
      vary: 'origin',
    });
  });

  it('of any other page, or none, is allowed nothing', async () => {
    const mine = await makeTracker(api, key, {
      origins: ['https://*.example.net', 'https://gone.example.net:8443'],
    });
    const allowed = async (origin?: string) => allowedOrigin(await ask(origin)) !== undefined;
    expect(await allowed('https://a.b.example.net')).toBe(true);
    expect(await allowed('https://gone.example.net:8443')).toBe(true);
    for (const origin of [
      'https://example.net',
      'https://a.example.net:8443',
      'http://a.example.net',
      'null',
      '*',
    ]) {
      expect([origin, await allowed(origin)]).toEqual([origin, false]);
    }
    expect(await allowed()).toBe(false);
    await api.inject(key, { method: 'DELETE', url: `/v1/trackers/${mine}` });
    expect(await allowed('https://c.example.net')).toBe(false);
  });

  it('is for captures alone', async () => {
    const answer = await ask(PAGE, { url: '/v1/trackers' });
    expect([answer.statusCode, allowedOrigin(answer)]).toEqual([405, undefined]);
  });
});
