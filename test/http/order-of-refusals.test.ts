import type { InjectOptions } from 'fastify';
import { describe, expect, it } from 'vitest';
import type { ApiKey } from '../../http/contract/route.ts';
import { aRoute, aServer, authorized, someRoutes, TOKEN, uuid } from './shell.ts';

const json = { 'content-type': 'application/json' };
const long = `x=${'x'.repeat(600)}`;
const big = JSON.stringify({ ip: 'x'.repeat(1_100) });
const tracker = '/v1/trackers/2b6d6a5e-7d0f-4f0e-8a5a-3b1e0f1c2d3e';

type Case = [says: string, request: InjectOptions, status: number, code: string];

const cases: Case[] = [
  ['an unknown path before a long URL', { url: `/v1/nope?${long}` }, 404, 'not_found'],
  ['an unknown path before a missing key', { url: '/v1/nope' }, 404, 'not_found'],
  [
    'an unknown path before a broken content type',
    { method: 'POST', url: '/nope', headers: { 'content-type': ';' }, payload: 'x' },
    404,
    'not_found',
  ],
  ['a trailing slash as another path', { url: '/v1/lookup/' }, 404, 'not_found'],
  ['an empty path parameter as another path', { method: 'DELETE', url: '/v1/trackers/' }, 404, 'not_found'],
  [
    'an empty path segment as another path',
    { method: 'POST', url: '/v1/trackers//delete' },
    404,
    'not_found',
  ],
  ['a path that cannot be decoded', { url: '/v1/%zz' }, 404, 'not_found'],
  ['a path in other letters', { url: '/V1/lookup' }, 404, 'not_found'],
  ['a long URL before a wrong method', { method: 'PUT', url: `/v1/lookup?${long}` }, 414, 'uri_too_long'],
  ['a long URL before a missing key', { url: `/v1/lookup?${long}` }, 414, 'uri_too_long'],
  ['a wrong method before a missing key', { method: 'PUT', url: '/v1/lookup' }, 405, 'method_not_allowed'],
  [
    'a wrong method on a percent-encoded path',
    { method: 'PUT', url: '/v1/%6cookup' },
    405,
    'method_not_allowed',
  ],
  ['OPTIONS as a wrong method', { method: 'OPTIONS', url: '/v1/lookup' }, 405, 'method_not_allowed'],
  [
    'a missing key before an encoding',
    { method: 'POST', url: '/v1/lookup', headers: { 'content-encoding': 'gzip' } },
    401,
    'unauthorized',
  ],
  [
    'an encoding before a content type',
    keyed({ 'content-encoding': 'identity', 'content-type': 'text/plain' }, 'x'),
    415,
    'unsupported_encoding',
  ],
  [
    'a content type before a size',
    keyed({ 'content-type': 'text/plain' }, big),
    415,
    'unsupported_media_type',
  ],
  ['a missing content type', keyed({}, '{}'), 415, 'unsupported_media_type'],
  [
    'another charset',
    keyed({ 'content-type': 'application/json; charset=latin1' }, '{}'),
    415,
    'unsupported_media_type',
  ],
  [
    'a content type that only begins like JSON',
    keyed({ 'content-type': 'application/json-patch+json' }, '[]'),
    415,
    'unsupported_media_type',
  ],
  ['a size before bad JSON', keyed(json, big.slice(1)), 413, 'body_too_large'],
  ['an empty body', keyed(json, ''), 400, 'invalid_json'],
  [
    'an empty body without a content type, where one is required',
    keyed({}, ''),
    415,
    'unsupported_media_type',
  ],
  ['bad JSON', keyed(json, '{"ip":'), 400, 'invalid_json'],
  ['bytes that are no UTF-8', keyed(json, Buffer.from([0x22, 0xff, 0x22])), 400, 'invalid_json'],
  ['a byte order mark', keyed(json, '\ufeff{}'), 400, 'invalid_json'],
  [
    'a body where none belongs',
    { method: 'DELETE', url: tracker, headers: { ...authorized, ...json }, payload: '{}' },
    400,
    'invalid_body',
  ],
  ['a property where {} belongs', onDelete(json, '{"a":1}'), 400, 'invalid_body'],
  ['an array where {} belongs', onDelete(json, '[]'), 400, 'invalid_body'],
  ['a typed empty body where {} belongs', onDelete(json, ''), 400, 'invalid_json'],
  ['an untyped body where {} belongs', onDelete({}, '{}'), 415, 'unsupported_media_type'],
];

function keyed(headers: Record<string, string>, payload: string | Buffer): InjectOptions {
  return { method: 'POST', url: '/v1/lookup', headers: { ...authorized, ...headers }, payload };
}

function onDelete(headers: Record<string, string>, payload: string): InjectOptions {
  return { method: 'POST', url: `${tracker}/delete`, headers: { ...authorized, ...headers }, payload };
}

describe('a request is refused', () => {
  it.each(cases)('for %s', async (_says, request, status, code) => {
    const answer = await aServer().inject(request);

    expect([answer.statusCode, answer.json().error.code]).toEqual([status, code]);
    expect(answer.headers['content-type']).toBe('application/json');
    expect(answer.headers['cache-control']).toBe('no-store');
    expect(answer.headers['x-request-id']).toMatch(uuid);
    expect(answer.json().request_id).toBe(answer.headers['x-request-id']);
  });

  it.each([
    ['PUT', '/v1/lookup', 'GET, POST'],
    ['HEAD', '/v1/lookup', 'GET, POST'],
    ['TRACE', '/v1/lookup', 'GET, POST'],
    ['PROPFIND', '/v1/lookup', 'GET, POST'],
    ['GET', tracker, 'DELETE'],
    ['POST', '/healthz', 'GET, HEAD'],
  ])('with exactly the methods of the path: %s %s', async (method, url, allow) => {
    const answer = await aServer().inject({ method: method as 'GET', url });

    expect([answer.statusCode, answer.headers.allow]).toEqual([405, allow]);
  });

  it('for its rate, with the wait that admission names, before its body is looked at', async () => {
    const app = aServer({ admit: () => ({ code: 'rate_limit', retryAfter: 0.2 }) });
    const answer = await app.inject(keyed({ 'content-encoding': 'gzip' }, 'x'));

    expect([answer.statusCode, answer.json().error.code]).toEqual([429, 'rate_limit']);
    expect(answer.headers['retry-after']).toBe('1');
  });
});

describe('a key', () => {
  it.each([
    ['is missing', {}],
    ['is unknown', { authorization: 'Bearer other' }],
    ['has another scheme', { authorization: `Basic ${TOKEN}` }],
    ['follows two spaces', { authorization: `Bearer  ${TOKEN}` }],
    ['is empty', { authorization: 'Bearer ' }],
    ['is followed by more', { authorization: `Bearer ${TOKEN} x` }],
  ])('that %s is 401 with a challenge', async (_says, headers) => {
    const answer = await aServer().inject({ url: '/v1/trackers', headers });

    expect(answer.statusCode).toBe(401);
    expect(answer.headers['www-authenticate']).toBe('Bearer realm="partner"');
  });

  it('in the query is 401, also beside the same key in the header', async () => {
    const answer = await aServer().inject({ url: `/v1/trackers?key=${TOKEN}`, headers: authorized });

    expect(answer.statusCode).toBe(401);
  });

  it('may be looked up later, and its scheme is spelled in any case', async () => {
    const app = aServer({
      authenticate: async () => ({ ...someKey, name: 'later' }),
      admit: async () => null,
    });
    const answer = await app.inject({ url: '/v1/trackers', headers: { authorization: `bEARER ${TOKEN}` } });

    expect(answer.statusCode).toBe(200);
  });
});

const someKey: ApiKey = {
  kind: 'key',
  key_id: 'k',
  partner_id: 'p',
  name: '',
  requests_per_second: 1,
  new_enrichments_per_day: null,
  pending_enrichments: 1,
  company_signals: false,
};

describe('a request is accepted', () => {
  it.each([
    ['with a charset', { 'content-type': 'Application/JSON; charset="UTF-8"' }],
    ['with a plain content type', json],
  ])('%s', async (_says, headers) => {
    const answer = await aServer().inject(keyed(headers, '{"ip":"8.8.8.8","ip":"é"}'));

    expect(answer.json().body).toEqual({ ip: 'é' });
  });

  it('with {} or nothing where {} belongs', async () => {
    const answers = await Promise.all(
      [onDelete(json, '{ }'), onDelete({}, '')].map((request) => aServer().inject(request)),
    );

    expect(answers.map((answer) => answer.statusCode)).toEqual([200, 200]);
  });

  it('with a body on GET, which is ignored', async () => {
    const answer = await aServer().inject({
      method: 'GET',
      url: '/v1/lookup?ip=a%20b?c',
      headers: { ...authorized, 'content-type': 'x' },
      payload: '{',
    });

    expect(answer.json()).toEqual({ params: {}, query: 'ip=a%20b?c', body: null });
  });

  it('with a content type and no body on DELETE, and its path parameter decoded', async () => {
    const answer = await aServer().inject({
      method: 'DELETE',
      url: `/v1/trackers/%41${'b'.repeat(500)}`,
      headers: { ...authorized, ...json },
    });

    expect(answer.json().params).toEqual({ tracker_id: `A${'b'.repeat(500)}` });
  });

  it('with a content type that is none where no body belongs, and whatever comes with OPTIONS', async () => {
    const nonsense = { ...authorized, 'content-type': ';' };
    const preflight = aRoute({ method: 'OPTIONS', path: '/any', access: 'public', bodyLimit: 0 });
    const app = aServer({ routes: [...someRoutes, preflight] });
    const answers = await Promise.all([
      app.inject({ method: 'DELETE', url: tracker, headers: nonsense }),
      app.inject({ method: 'OPTIONS', url: '/any', headers: nonsense, payload: '{' }),
    ]);

    expect(answers.map((answer) => answer.statusCode)).toEqual([200, 200]);
  });

  it('with HEAD outside /v1, and keeps its own X-Request-ID', async () => {
    const theirs = '00000000-0000-4000-8000-000000000000';
    const answer = await aServer().inject({
      method: 'HEAD',
      url: '/healthz',
      headers: { 'x-request-id': theirs },
    });

    expect([answer.statusCode, answer.body]).toEqual([200, '']);
    expect(answer.headers['x-request-id']).toMatch(uuid);
    expect(answer.headers['x-request-id']).not.toBe(theirs);
  });

  it('and answered without a body, still with its id', async () => {
    const routes = [
      ...someRoutes,
      aRoute({
        method: 'POST',
        path: '/v1/nothing',
        body: 'optional',
        handle: () => ({ status: 204, body: null }),
      }),
    ];
    const answer = await aServer({ routes }).inject({
      method: 'POST',
      url: '/v1/nothing',
      headers: authorized,
    });

    expect([answer.statusCode, answer.body, answer.headers['content-type']]).toEqual([204, '', undefined]);
    expect(answer.headers['x-request-id']).toMatch(uuid);
  });
});
