import { describe, expect, it } from 'vitest';
import { OutcomeUnknown, StoreBusy, StoreUnavailable } from '../../event-store/port.ts';
import type { Reply, Route } from '../../http/contract/route.ts';
import { UNAVAILABLE_MESSAGE } from '../../http/errors/error-catalog.ts';
import { BackendTimeout, failureCode } from '../../http/errors/failures.ts';
import { aKey, aRoute, aServer, authorized, type Logged } from './shell.ts';

const withCode = (code: string) => Object.assign(new Error('secret text'), { code });
const fromServer = (code: string) => Object.assign(withCode(code), { severity: 'FATAL' });

describe('an exception', () => {
  it.each([
    [new StoreBusy(), 'api_busy'],
    [new StoreUnavailable(), 'backend_unavailable'],
    [new OutcomeUnknown(), 'backend_unavailable'],
    [new BackendTimeout(), 'backend_timeout'],
    [withCode('ECONNREFUSED'), 'backend_unavailable'],
    [fromServer('57P01'), 'backend_unavailable'],
    [new Error('query failed', { cause: fromServer('57014') }), 'backend_timeout'],
    [fromServer('08006'), 'backend_unavailable'],
    [fromServer('57014'), 'backend_timeout'],
    [new Error('Connection terminated unexpectedly'), 'backend_unavailable'],
    [Object.assign(withCode('ENOENT'), { syscall: 'connect' }), 'backend_unavailable'],
    [new Error('query failed', { cause: fromServer('57P03') }), 'backend_unavailable'],
    [fromServer('23505'), 'service_unavailable'],
    [withCode('ENOENT'), 'service_unavailable'],
    ['a thrown text', 'service_unavailable'],
  ])('%s becomes %s', (failure, code) => {
    expect(failureCode(failure)).toBe(code);
  });

  it.each<[string, Route['handle']]>([
    [
      'thrown',
      () => {
        throw new Error('oops');
      },
    ],
    [
      'rejected',
      async () => {
        throw new Error('oops');
      },
    ],
  ])(
    '%s by a handler is a 503 with the fixed message, logged with its stack and without secrets',
    async (_how, handle) => {
      const logged: Logged[] = [];
      const app = aServer({ routes: [aRoute({ method: 'GET', path: '/v1/x', handle })], logged });
      const answer = await app.inject({ url: '/v1/x?ip=8.8.8.8', headers: authorized });

      expect(answer.statusCode).toBe(503);
      expect(answer.json().error).toEqual({ code: 'service_unavailable', message: UNAVAILABLE_MESSAGE });
      expect(answer.headers['retry-after']).toBe('5');
      expect(logged).toEqual([
        {
          message: 'request failed',
          details: expect.objectContaining({
            path: '/v1/x',
            stack: expect.stringContaining('oops'),
            request_id: answer.json().request_id,
          }),
        },
      ]);
      expect(JSON.stringify(logged)).not.toMatch(/8\.8\.8\.8|a-good-key/);
    },
  );

  it('in authentication is a 503, not a 401', async () => {
    const app = aServer({ authenticate: () => Promise.reject(new StoreUnavailable()) });
    const answer = await app.inject({ url: '/v1/lookup', headers: authorized });

    expect([answer.statusCode, answer.json().error.code]).toEqual([503, 'backend_unavailable']);
  });
});

describe('a slow handler', () => {
  it('is a backend_timeout that the route still sees, and its late answer is dropped', async () => {
    const seen: Reply[] = [];
    const { promise, resolve } = Promise.withResolvers<Reply>();
    const route = aRoute({
      method: 'GET',
      path: '/v1/x',
      handle: () => promise,
      beforeSend: (_request, answer) => {
        seen.push(answer);
        return answer;
      },
    });
    const app = aServer({ routes: [route], requestTimeouts: { handlerMs: 5 } });
    const answer = await app.inject({ url: '/v1/x', headers: authorized });
    resolve({ status: 200, body: '' });
    await promise;

    expect([answer.statusCode, answer.json().error.code]).toEqual([503, 'backend_timeout']);
    expect(seen.map(({ code }) => code)).toEqual(['backend_timeout']);
  });

  it('has only the time that authentication and admission left', async () => {
    const wait = <T>(value: T) => new Promise<T>((resolve) => setTimeout(resolve, 200, value));
    const answerWithin = (handlerMs: number) => {
      const handle = () => wait<Reply>({ status: 200, body: '' });
      const app = aServer({
        routes: [aRoute({ method: 'GET', path: '/v1/x', handle })],
        authenticate: () => wait(aKey),
        admit: () => wait(null),
        requestTimeouts: { handlerMs },
      });
      return app.inject({ url: '/v1/x', headers: authorized });
    };

    const [short, long] = await Promise.all([answerWithin(500), answerWithin(20_000)]);
    expect([short.statusCode, long.statusCode]).toEqual([503, 200]);
    expect(short.json().error.code).toBe('backend_timeout');
  });
});

describe("a route's beforeSend hook", () => {
  const json = { ...authorized, 'content-type': 'application/json' };
  const seenBy = async (headers: Record<string, string>, payload: string, url = '/v1/x') => {
    const seen: string[] = [];
    const route = aRoute({
      method: 'POST',
      path: '/v1/x',
      body: 'json',
      bodyLimit: 9,
      targetLimit: 99,
      beforeSend: (request, answer) => {
        seen.push(`${request.caller.key_id} ${answer.status} ${answer.code ?? ''}`);
        return answer;
      },
    });
    const limited = headers['x-limited'] === '1';
    const app = aServer({
      routes: [route],
      admit: () => (limited ? { code: 'api_rate_limit', retryAfter: 1 } : null),
    });
    await app.inject({ method: 'POST', url, headers, payload });
    return seen;
  };

  it.each([
    ['200', json, '{}', `${aKey.key_id} 200 `],
    ['429', { ...json, 'x-limited': '1' }, '{}', `${aKey.key_id} 429 api_rate_limit`],
    ['415', authorized, '{}', `${aKey.key_id} 415 unsupported_media_type`],
    ['413', json, '{"long":"long"}', `${aKey.key_id} 413 body_too_large`],
    ['400', json, '{', `${aKey.key_id} 400 invalid_json`],
  ])('sees a %s', async (_status, headers, payload, expected) => {
    expect(await seenBy(headers, payload)).toEqual([expected]);
  });

  it.each([
    ['401', {}, '/v1/x'],
    ['404', authorized, '/v1/y'],
    ['414', authorized, `/v1/x?${'x'.repeat(99)}`],
  ])('does not see a %s', async (_status, headers, url) => {
    expect(await seenBy({ ...headers }, '{}', url)).toEqual([]);
  });

  it('may replace the answer, at once or later', async () => {
    const routes = [
      aRoute({
        method: 'GET',
        path: '/v1/now',
        beforeSend: (_request, answer) => ({ ...answer, status: 202 }),
      }),
      aRoute({
        method: 'GET',
        path: '/v1/later',
        beforeSend: async (_request, answer) => ({ ...answer, status: 202 }),
      }),
    ];
    const answers = await Promise.all(
      ['/v1/now', '/v1/later'].map((url) => aServer({ routes }).inject({ url, headers: authorized })),
    );

    expect(answers.map((answer) => answer.statusCode)).toEqual([202, 202]);
  });
});
