import { describe, expect, it, vi } from 'vitest';
import { type Client, createClient, DoorplateError } from '../../../clients/typescript/src/index.ts';
import { answer, BROKEN, failureOf, fakeService, REQUEST_ID, type Reply, refused } from './fakes.ts';

const OK = answer(200, { trackers: [] });
const TRACKER = { name: 'a site', origins: ['https://www.example.com'] };
/** The given time, or at most a tenth longer. */
const about = (ms: number) => ({
  asymmetricMatch: (value: number) => value >= ms && value <= ms * 1.1,
});

describe('a client', () => {
  it.each(['doorplate.example', 'ftp://doorplate.example', 'https://me:pw@doorplate.example', ''])(
    'is not created with %o',
    (baseUrl) => {
      expect(() => createClient({ baseUrl, apiKey: 'dp_test' })).toThrow(/^baseUrl/);
    },
  );

  it('is not created with a key that no header can hold, and its error does not repeat the key', () => {
    const make = () => createClient({ baseUrl: 'https://doorplate.example', apiKey: 'dp_secret\n' });
    expect(make).toThrow(TypeError);
    expect(make).toThrow(expect.objectContaining({ message: expect.not.stringContaining('secret') }));
  });

  it('sends the key, follows no redirect, and accepts a base URL with a path and a slash', async () => {
    const inits: RequestInit[] = [];
    const urls: string[] = [];
    const fetch = (async (url: string, init: RequestInit) => {
      urls.push(url);
      inits.push(init);
      return OK.clone();
    }) as typeof globalThis.fetch;
    const client = createClient({ baseUrl: 'https://example.com/doorplate/', apiKey: 'dp_test', fetch });
    await client.trackers.list();
    expect(urls).toEqual(['https://example.com/doorplate/v1/trackers']);
    expect(inits).toMatchObject([{ redirect: 'manual', headers: { authorization: 'Bearer dp_test' } }]);
  });
});

describe('a call', () => {
  it.each(['', '.', '..'])('is not made with an id like %j, which would change the path', async (id) => {
    const fetch = vi.fn();
    const client = createClient({ baseUrl: 'https://example.com', apiKey: 'dp_test', fetch });
    await expect(client.trackers.usage(id)).rejects.toThrow(TypeError);
    expect(fetch).not.toHaveBeenCalled();
  });
});

describe('an error', () => {
  const fails = async (reply: Reply, retries = 0) => {
    const { client, until } = fakeService([reply], { retries });
    return until(failureOf(client.trackers.list()));
  };

  it('of the service has its status, code, request id and delay', async () => {
    const error = await fails(refused(429, 'rate_limit', 7));
    expect(error).toBeInstanceOf(DoorplateError);
    expect(error).toMatchObject({
      name: 'DoorplateError',
      kind: 'answer',
      outcome: 'refused',
      operation: 'listTrackers',
      status: 429,
      code: 'rate_limit',
      requestId: REQUEST_ID,
      retryAfterSeconds: 7,
      body: { error: { code: 'rate_limit', message: 'No.' } },
      message: 'GET /v1/trackers: 429 rate_limit: No.',
    });
  });

  it.each([
    ['a proxy', answer(502, '<html>Bad gateway</html>', { 'x-request-id': 'its-own' }), 502, 'its-own'],
    ['a redirect', answer(302, '', { location: 'https://elsewhere.example' }), 302, null],
    ['something else than the API', answer(200, 'Hello'), 200, null],
  ])('of %s has no code, and its outcome is unknown', async (_, reply, status, requestId) => {
    expect(await fails(reply)).toMatchObject({
      kind: 'answer',
      outcome: 'unknown',
      status,
      code: null,
      requestId,
      body: null,
    });
  });

  it('of the network differs from a response and has a reason', async () => {
    expect(await fails(BROKEN)).toMatchObject({
      kind: 'network',
      outcome: 'unknown',
      status: null,
      cause: BROKEN,
    });
  });

  it('of a timeout comes after the time limit, and not before', async () => {
    const { client, until, now } = fakeService(['hangs'], { retries: 0, timeoutMs: 3_000 });
    const error = await until(failureOf(client.trackers.list()));
    expect(error).toMatchObject({ kind: 'timeout', outcome: 'unknown' });
    expect(now()).toBe(3_000);
  });

  it("of an abort has the signal's reason, during a request or a wait", async () => {
    for (const reply of ['hangs', refused(503, 'api_busy', 5)] as const) {
      const { client, until, asked, now } = fakeService([reply]);
      const stop = new AbortController();
      const failed = failureOf(client.trackers.list({ signal: stop.signal }));
      await new Promise(setImmediate);
      stop.abort('enough');
      expect(await until(failed)).toMatchObject({ kind: 'aborted', outcome: 'unknown', cause: 'enough' });
      expect([asked.length, now()]).toEqual([1, 0]);
    }
  });
});

describe('a call is repeated', () => {
  it.each<[string, Reply]>([
    ['429', refused(429, 'rate_limit')],
    ['503', refused(503, 'backend_unavailable')],
    ['a proxy', answer(502, 'Bad gateway')],
    ['a broken connection', BROKEN],
    ['a time-out', 'hangs'],
  ])('after %s', async (_, reply) => {
    const { client, until, asked } = fakeService([reply, reply, OK]);
    await expect(until(client.trackers.list())).resolves.toEqual({ trackers: [] });
    expect(asked).toHaveLength(3);
  });

  it('after the delay that the service asks for, or with growing delays otherwise', async () => {
    const replies = [refused(503, 'api_busy', 5), BROKEN, BROKEN, BROKEN, OK];
    const { client, until, asked } = fakeService(replies);
    await until(client.trackers.list());
    const waits = asked.slice(1).map(({ at }, n) => at - (asked[n]?.at ?? 0));
    expect(waits).toEqual([about(5_000), about(1_000), about(2_000), about(4_000)]);
  });

  it.each([
    ['with the time of the answer beside it', { date: 'Sat, 14 Mar 2026 12:00:00 GMT' }],
    ['by its own clock', {}],
  ])('no earlier than the date that a proxy names, %s', async (_, dated) => {
    vi.useFakeTimers({ now: Date.parse('2026-03-14T12:00:00Z'), toFake: ['Date'] });
    const headers = { 'retry-after': 'Sat, 14 Mar 2026 12:00:20 GMT', ...dated };
    const { client, until, asked } = fakeService([answer(503, 'Busy', headers), OK]);
    await until(client.trackers.list()).finally(() => vi.useRealTimers());
    expect(asked[1]?.at).toEqual(about(20_000));
  });

  it.each(['Saturday, 14-Mar-26 12:00:20 GMT', 'Sat Mar 14 12:00:20 2026', '\t20 '])(
    'no earlier than named in an obsolete form of date, or with white space: %o',
    async (header) => {
      const headers = { 'retry-after': header, date: 'Sat, 14 Mar 2026 12:00:00 GMT' };
      const { client, until, asked } = fakeService([answer(503, 'Busy', headers), OK]);
      await until(client.trackers.list());
      expect(asked[1]?.at).toEqual(about(20_000));
    },
  );

  it.each(['0', 'Sat, 14 Mar 2020 12:00:00 GMT', 'soon GMT', '-1'])(
    'with growing delays when the service names no usable time: %o',
    async (header) => {
      const { client, until, asked } = fakeService([answer(503, 'Busy', { 'retry-after': header })]);
      await until(failureOf(client.trackers.list()));
      const waits = asked.slice(1).map(({ at }, n) => at - (asked[n]?.at ?? 0));
      expect(waits).toEqual([about(500), about(1_000), about(2_000), about(4_000)]);
    },
  );

  it('up to the given number of attempts', async () => {
    const { client, until, asked } = fakeService([BROKEN], { retries: 2 });
    await until(failureOf(client.trackers.list()));
    expect(asked).toHaveLength(3);
    await until(failureOf(client.trackers.list({ retries: 0 })));
    expect(asked).toHaveLength(4);
  });

  it('never when the service asks for a long wait, which the error reports', async () => {
    const { client, until, asked } = fakeService([refused(429, 'tracker_limit', 60)]);
    const error = await until(failureOf(client.trackers.create(TRACKER)));
    expect(error).toMatchObject({ code: 'tracker_limit', retryAfterSeconds: 60, outcome: 'refused' });
    expect(asked).toHaveLength(1);
  });

  it.each([
    [400, 'invalid_tracker'],
    [401, 'unauthorized'],
    [404, 'tracker_not_found'],
    [409, 'tracker_disabled'],
    [410, 'tracker_deleted'],
  ])('never after %i', async (status, code) => {
    const { client, until, asked } = fakeService([refused(status, code)]);
    expect(await until(failureOf(client.trackers.list()))).toMatchObject({
      status,
      code,
      outcome: 'refused',
    });
    expect(asked).toHaveLength(1);
  });

  it.each<[string, (client: Client) => Promise<unknown>]>([
    ['a lookup', (client) => client.requestLookup('8.8.8.8')],
    ['a reveal', (client) => client.requestReveal('s', 'a-key')],
    ['enabling a tracker', (client) => client.trackers.enable('t')],
    ['deleting a tracker', (client) => client.trackers.delete('t')],
    ['adding a domain', (client) => client.domains.create('t', { hostname: 'h' })],
    ['changing a webhook', (client) => client.webhooks.update('w', {})],
    ['deleting a webhook', (client) => client.webhooks.delete('w')],
  ])('when it changes something idempotently: %s', async (_, call) => {
    const { client, until, asked } = fakeService([BROKEN, OK]);
    await until(call(client));
    expect(asked).toHaveLength(2);
  });

  it('when it creates something only after a refusal for its rate', async () => {
    const created = fakeService([refused(429, 'rate_limit', 1), answer(201, { id: 'new' })]);
    await expect(created.until(created.client.trackers.create(TRACKER))).resolves.toEqual({ id: 'new' });

    for (const reply of [BROKEN, 'hangs', refused(503, 'service_unavailable', 5)] as const) {
      const { client, until, asked } = fakeService([reply]);
      const error = await until(failureOf(client.trackers.create(TRACKER)));
      expect(error).toMatchObject({ outcome: 'unknown' });
      expect(asked).toHaveLength(1);
    }
  });
});
