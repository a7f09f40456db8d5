import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Answer, Route } from '../../http/route.ts';
import type { ServerDeps } from '../../http/server.ts';
import { eventually } from '../support/eventually.ts';
import { aKey, aRoute, aServer, exchangeBytes, portOf, TOKEN, uuid } from './shell.ts';

const KEYED = `Host: x\r\nAuthorization: Bearer ${TOKEN}\r\n`;
const CLOSE = 'Connection: close\r\n\r\n';

let app: FastifyInstance;

async function listening(parts: Parameters<typeof aServer>[0] = {}): Promise<FastifyInstance> {
  app = aServer(parts);
  await app.listen({ port: 0, host: '127.0.0.1' });
  return app;
}

afterEach(() => app.close());

/** Status and code of an answer, having checked that its id stands in header and body. */
function summary(text: string): [status: number, code: string] {
  const [head = '', body = ''] = text.split('\r\n\r\n');
  const id = /^x-request-id: (.*)$/im.exec(head)?.[1];
  const parsed = JSON.parse(body);
  expect(id).toMatch(uuid);
  expect(parsed.request_id).toBe(id);
  return [Number(head.split(' ')[1]), parsed.error.code];
}

describe('on a socket', () => {
  it.each([
    [
      'two Authorization headers',
      `GET /v1/trackers HTTP/1.1\r\n${KEYED}Authorization: Bearer ${TOKEN}\r\n${CLOSE}`,
      401,
      'unauthorized',
    ],
    [
      'two Content-Type headers',
      `POST /v1/lookup HTTP/1.1\r\n${KEYED}Content-Type: application/json\r\nContent-Type: application/json\r\nContent-Length: 2\r\n${CLOSE}{}`,
      415,
      'unsupported_media_type',
    ],
    ['no Host header', `GET /healthz HTTP/1.1\r\n${CLOSE}`, 400, 'invalid_body'],
    ['a bad URL', `GET /v1/%zz HTTP/1.1\r\n${KEYED}${CLOSE}`, 404, 'not_found'],
    ['a proxy request', 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n', 404, 'not_found'],
    ['an asterisk', `OPTIONS * HTTP/1.1\r\nHost: x\r\n${CLOSE}`, 404, 'not_found'],
    ['PROPFIND', `PROPFIND /v1/%6Cookup HTTP/1.1\r\nHost: x\r\n${CLOSE}`, 405, 'method_not_allowed'],
    ['no HTTP at all', 'hello\r\n\r\n', 400, 'invalid_body'],
    [
      'more than a hundred headers',
      `GET /healthz HTTP/1.1\r\nHost: x\r\n${'a: b\r\n'.repeat(99)}${CLOSE}`,
      431,
      'invalid_body',
    ],
    ['a Host with a user', `GET /healthz HTTP/1.1\r\nHost: a@x\r\n${CLOSE}`, 400, 'invalid_body'],
    ['a Host with a path', `GET /healthz HTTP/1.1\r\nHost: x/a\r\n${CLOSE}`, 400, 'invalid_body'],
    ['a Host with a name as port', `GET /nowhere HTTP/1.1\r\nHost: x:a\r\n${CLOSE}`, 400, 'invalid_body'],
    ['two Host headers', `GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n${CLOSE}`, 400, 'invalid_body'],
    [
      'two Host headers on an unknown path',
      `GET /nowhere HTTP/1.1\r\nHost: x\r\nHOST: x\r\n${CLOSE}`,
      400,
      'invalid_body',
    ],
    [
      'two Host headers on a path that cannot be decoded',
      `GET /%ff HTTP/1.1\r\nHost: x\r\nHOST: x\r\n${CLOSE}`,
      400,
      'invalid_body',
    ],
    ...['gzip, chunked', 'identity', 'chunked, chunked', 'x'].map(
      (coding): [string, string, number, string] => [
        `Transfer-Encoding: ${coding}`,
        `POST /v1/lookup HTTP/1.1\r\n${KEYED}Transfer-Encoding: ${coding}\r\n\r\n`,
        400,
        'invalid_body',
      ],
    ),
    [
      'both framings of a body',
      `POST /v1/lookup HTTP/1.1\r\n${KEYED}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n`,
      400,
      'invalid_body',
    ],
    [
      'a Transfer-Encoding in HTTP/1.0',
      `POST /v1/lookup HTTP/1.0\r\n${KEYED}Content-Type: application/json\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
      'invalid_body',
    ],
    [
      '17 KB of headers',
      `GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(17_000)}\r\n\r\n`,
      431,
      'invalid_body',
    ],
    [
      'a URL of 17 KB',
      `GET /v1/lookup?ip=${'x'.repeat(17_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
      414,
      'uri_too_long',
    ],
    [
      'an oversize chunked body',
      `POST /v1/lookup HTTP/1.1\r\n${KEYED}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n${CLOSE}800\r\n${'x'.repeat(2_048)}\r\n0\r\n\r\n`,
      413,
      'body_too_large',
    ],
    [
      'an oversize announced body',
      `POST /v1/lookup HTTP/1.1\r\n${KEYED}Content-Type: application/json\r\nContent-Length: 1025\r\n${CLOSE}`,
      413,
      'body_too_large',
    ],
  ])('%s', async (_says, bytes, status, code) => {
    expect(summary(await exchangeBytes(await listening(), bytes))).toEqual([status, code]);
  });

  it('HEAD under /v1 is 405 without a body', async () => {
    const text = await exchangeBytes(await listening(), `HEAD /v1/lookup HTTP/1.1\r\nHost: x\r\n${CLOSE}`);

    expect(text).toMatch(/^HTTP\/1\.1 405 .*\r\nallow: GET, POST\r\n/s);
    expect(text.endsWith('\r\n\r\n')).toBe(true);
  });

  it('an unknown expectation is ignored', async () => {
    const text = await exchangeBytes(
      await listening(),
      `GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: luck\r\n${CLOSE}`,
    );

    expect(text).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('an empty chunked body needs no content type where {} belongs', async () => {
    const text = await exchangeBytes(
      await listening(),
      `POST /v1/trackers/a/delete HTTP/1.1\r\n${KEYED}Transfer-Encoding: chunked\r\n${CLOSE}0\r\n\r\n`,
    );

    expect(text).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('a body in two pieces is one body', async () => {
    const head = `POST /v1/lookup HTTP/1.1\r\n${KEYED}Content-Type: application/json\r\nContent-Length: 8\r\n${CLOSE}`;
    const text = await exchangeBytes(await listening(), `${head}{"a"`, ':17}');

    expect(text).toMatch(/"body":\{"a":17\}\}$/);
  });

  it('a refused body that never ends is cut', async () => {
    const head = `POST /v1/nope HTTP/1.1\r\n${KEYED}Transfer-Encoding: chunked\r\n\r\n`;
    const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`;
    const text = await exchangeBytes(await listening(), head, ...Array.from({ length: 20 }, () => chunk));

    expect(text).not.toContain('HTTP/1.1 400');
  });

  it.each([
    ['whose size is not announced', `800\r\n${'x'.repeat(2_048)}\r\n0\r\n\r\n`, 413],
    ['that is no JSON', '1\r\n{\r\n0\r\n\r\n', 400],
  ])('a refused body %s leaves the connection to the next request', async (_what, body, status) => {
    const refused = `POST /v1/lookup HTTP/1.1\r\n${KEYED}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${body}`;
    const text = await exchangeBytes(
      await listening(),
      `${refused}GET /healthz HTTP/1.1\r\nHost: x\r\n${CLOSE}`,
    );

    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`, 'HTTP/1.1 200']);
    expect(text).toMatch(/^connection: keep-alive\r\nkeep-alive: timeout=72\r$/im);
  });

  it('a refused request leaves the connection to the next', async () => {
    const refused = `POST /v1/lookup HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}`;
    const text = await exchangeBytes(
      await listening(),
      `${refused}GET /healthz HTTP/1.1\r\nHost: x\r\n${CLOSE}`,
    );

    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401', 'HTTP/1.1 200']);
  });
});

describe('a proxy request', () => {
  const CONNECT = 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n';
  const stillAnswers = async (): Promise<void> => {
    const text = await exchangeBytes(app, `GET /healthz HTTP/1.1\r\nHost: x\r\n${CLOSE}`);
    expect(text).toMatch(/^HTTP\/1\.1 200 /);
  };

  it('may end in a reset', async () => {
    await listening();
    const broken = new Promise<void>((resolve) => {
      app.server.on('connect', (_request, socket) => {
        socket
          .on('close', resolve)
          .destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }));
      });
    });
    await exchangeBytes(app, CONNECT);
    await broken;
    await stillAnswers();
  });

  it('may follow a message that was refused with the end of the connection', async () => {
    await listening();
    const chunks = `POST /v1/lookup HTTP/1.1\r\n${KEYED}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\na\r\n'.repeat(200)}0\r\n\r\n`;
    await exchangeBytes(app, chunks + CONNECT);
    await stillAnswers();
  });
});

describe('every answer', () => {
  it.each([
    ['of a route', `GET /healthz HTTP/1.1\r\nHost: x\r\n${CLOSE}`],
    ['of no route', `GET /nowhere HTTP/1.1\r\nHost: x\r\n${CLOSE}`],
    ['of no method', `PUT /healthz HTTP/1.1\r\nHost: x\r\n${CLOSE}`],
    ['without a key', `GET /v1/trackers HTTP/1.1\r\nHost: x\r\n${CLOSE}`],
    ['to no HTTP', 'hello\r\n\r\n'],
    ['to a proxy request', 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n'],
  ])('%s is not to be sniffed, and keeps browsers to https where the service is', async (_what, bytes) => {
    const text = await exchangeBytes(await listening({ isHttps: true }), bytes);
    expect(text).toMatch(/^x-content-type-options: nosniff\r$/im);
    expect(text).toMatch(/^strict-transport-security: max-age=31536000\r$/im);
    await app.close();
    const plain = await exchangeBytes(await listening(), bytes);
    expect(plain).toMatch(/^x-content-type-options: nosniff\r$/im);
    expect(plain).not.toMatch(/^strict-transport-security:/im);
  });
});

const ONE = { address: '192.0.2.1', network: '192.0.2.0/24' };
const anotherAddress = () => ({ ...ONE, address: randomUUID() });

describe('connections', () => {
  const open = async (count: number) => {
    const sockets = Array.from({ length: count }, () => connect(portOf(app), '127.0.0.1'));
    const left = await Promise.all(
      sockets.map(
        (socket) =>
          new Promise<Socket | null>((resolve) => {
            socket.on('error', () => undefined).on('close', () => resolve(null));
            socket.on('data', () => resolve(socket));
            socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
          }),
      ),
    );
    return left.filter((socket) => socket !== null);
  };

  it.each([
    ['in all', { inAll: 3, perAddress: 100, perNetwork: 100, callerAt: () => ONE }, 3],
    ['from one address', { inAll: 100, perAddress: 2, perNetwork: 100, callerAt: () => ONE }, 2],
    ['from one network', { inAll: 100, perAddress: 2, perNetwork: 4, callerAt: anotherAddress }, 4],
    ['not from a proxy', { inAll: 100, perAddress: 2, perNetwork: 2, callerAt: () => null }, 6],
  ])(
    'are closed beyond the ceiling %s, and may be opened again after others have ended',
    async (_of, limits, most) => {
      await listening({ connectionLimits: limits });
      const first = await open(6);
      expect(first).toHaveLength(most);
      const ended = first.map((socket) => once(socket.destroy(), 'close'));
      await Promise.all(ended);
      await eventually(
        'there is room again',
        async () => {
          const [again] = await open(1);
          again?.destroy();
          return again;
        },
        (again) => again !== undefined,
      );
    },
  );
});

/** Each address is a network. @returns a function that asks for a path from an address */
const listeningForNetworks = async (inAll: number, route: Route) => {
  await listening({
    routes: [route, aRoute({ method: 'GET', path: '/healthz', access: 'public' })],
    connectionLimits: {
      inAll,
      perAddress: 100,
      perNetwork: 100,
      callerAt: (address) => ({ address, network: address }),
    },
  });
  return (localAddress: string, path: string): Socket => {
    const socket = connect({ port: portOf(app), host: '127.0.0.1', localAddress });
    socket.on('error', () => undefined).write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    return socket;
  };
};

const HALF = 'POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf';

it.each([
  ['', ''],
  [', also behind which half a request has come', HALF],
])(
  'connections of a network that has more than others leave room for those, but not while they await an answer%s',
  async (_which, more) => {
    const long = Promise.withResolvers<Answer>();
    const handle = () => long.promise;
    const slow = aRoute({ method: 'GET', path: '/slow', access: 'public', handle });
    const open = await listeningForNetworks(4, slow);
    const begun = times(app.server, 'request', 4);
    const many = ['/slow', '/slow', '/healthz', '/healthz'].map((path) => open('127.0.0.1', path));
    await Promise.all(many.slice(2).map((socket) => once(socket, 'data')));
    await begun;
    if (more !== '') {
      const again = times(app.server, 'request', 2);
      for (const socket of many.slice(0, 2)) socket.write(more);
      await again;
    }
    const closed = Promise.all(many.slice(2).map((socket) => once(socket, 'close')));
    const few = ['127.0.0.2', '127.0.0.3'].map((address) => open(address, '/healthz'));
    await Promise.all(few.map((socket) => once(socket, 'data')));
    await closed;
    // All others of the network await an answer, and it has no more than one more than others.
    await once(open('127.0.0.4', '/healthz'), 'close');
    long.resolve({ status: 204, body: null });
    await Promise.all(many.slice(0, 2).map((socket) => once(socket, 'data')));
    for (const socket of [...many, ...few]) socket.destroy();
  },
);

it('connections of the network with most after it leave room while all of the largest await an answer', async () => {
  const long = Promise.withResolvers<Answer>();
  const handle = () => long.promise;
  const slow = aRoute({ method: 'GET', path: '/slow', access: 'public', handle });
  const open = await listeningForNetworks(5, slow);
  const begun = times(app.server, 'request', 3);
  const waiting = Array.from({ length: 3 }, () => open('127.0.0.1', '/slow'));
  await begun;
  const idle = [1, 2].map(() => open('127.0.0.2', '/healthz'));
  await Promise.all(idle.map((socket) => once(socket, 'data')));
  const newcomer = open('127.0.0.3', '/healthz');
  await once(newcomer, 'data');
  long.resolve({ status: 204, body: null });
  await Promise.all(waiting.map((socket) => once(socket, 'data')));
  for (const socket of [...waiting, ...idle, newcomer]) socket.destroy();
});

/** All connections are those of a proxy. @returns a function that begins a request of a network */
const listeningBehindProxy = async (inAll: number) => {
  const address = (request: IncomingMessage): string => String(request.headers['x-forwarded-for']);
  await listening({
    routes: [
      aRoute({ method: 'GET', path: '/healthz', access: 'public' }),
      aRoute({ method: 'POST', path: '/long', access: 'public', body: 'json' }),
    ],
    connectionLimits: { inAll, perAddress: 100, perNetwork: 100, callerAt: () => null },
    requestLimit: {
      perAddress: 100,
      perNetwork: 100,
      callerOf: (request) => ({ address: address(request), network: address(request) }),
    },
  });
  return (of: string, request: string): Socket => {
    const socket = connect(portOf(app), '127.0.0.1').on('error', () => undefined);
    socket.write(`${request} HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ${of}\r\n`);
    return socket;
  };
};

it('connections of a proxy that wait for the bodies of one network leave room for the requests of another', async () => {
  const ask = await listeningBehindProxy(3);
  const begun = times(app.server, 'request', 3);
  const half = Array.from({ length: 3 }, () => ask('one', 'POST /long'));
  for (const socket of half) socket.write('Content-Type: application/json\r\nContent-Length: 9\r\n\r\nhalf');
  await begun;
  const few = ['two', 'three'].map((of) => ask(of, 'GET /healthz'));
  for (const socket of few) socket.write('\r\n');
  await Promise.all(few.map((socket) => once(socket, 'data')));
  for (const socket of [...half, ...few]) socket.destroy();
});

it('a connection of a proxy stays open for a second after an answer: its next request may be under way', async () => {
  const ask = await listeningBehindProxy(2);
  const answered = ['one', 'one'].map((of) => ask(of, 'GET /healthz'));
  for (const socket of answered) socket.write('\r\n');
  await Promise.all(answered.map((socket) => once(socket, 'data')));
  await once(ask('two', 'GET /healthz'), 'close');
  const now = performance.now();
  const clock = vi.spyOn(performance, 'now').mockReturnValue(now + 1_000);
  onTestFinished(() => clock.mockRestore());
  const newcomer = ask('two', 'GET /healthz');
  newcomer.write('\r\n');
  await once(newcomer, 'data');
  for (const socket of [...answered, newcomer]) socket.destroy();
});

it.each(['and ask nothing', 'and ask again'])(
  'connections that have taken nothing of an answer for seconds, %s, leave room for another network',
  async (then) => {
    const body = 'x'.repeat(32 * 1_048_576);
    const long = aRoute({
      method: 'GET',
      path: '/long',
      access: 'public',
      handle: () => ({ status: 200, body }),
    });
    const open = await listeningForNetworks(2, long);
    const begun = times(app.server, 'request', 2);
    const silent = [1, 2].map(() => open('127.0.0.1', '/long').pause());
    await begun;
    await once(open('127.0.0.2', '/healthz'), 'close');
    const now = performance.now();
    const clock = vi.spyOn(performance, 'now').mockReturnValue(now + 4_000);
    onTestFinished(() => clock.mockRestore());
    if (then === 'and ask again') {
      const again = times(app.server, 'request', 2);
      for (const socket of silent) socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
      await again;
    }
    clock.mockReturnValue(now + 5_000);
    const newcomer = open('127.0.0.2', '/healthz');
    await once(newcomer, 'data');
    for (const socket of [...silent, newcomer]) socket.destroy();
  },
);

/** Resolves once a server has emitted an event so many times. */
const times = (server: Server, event: 'connection' | 'request', count: number): Promise<void> =>
  new Promise((resolve) => {
    let left = count;
    server.on(event, () => {
      left -= 1;
      if (left === 0) resolve();
    });
  });

it.each([
  ['a page', 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n', 'answer'],
  ['a page that does not exist', 'GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n', 'answer'],
  ['a method that a page does not have', 'DELETE /healthz HTTP/1.1\r\nHost: x\r\n\r\n', 'answer'],
  ['a path that cannot be decoded', 'GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n', 'answer'],
  ['nothing', '', 'connection'],
  ['half a page', 'GET /healthz HTTP/1.1\r\n', 'connection'],
  [
    'a call with half its body',
    `POST /v1/lookup HTTP/1.1\r\n${KEYED}Content-Type: application/json\r\nContent-Length: 9\r\n\r\nhalf`,
    'request',
  ],
] as const)(
  'connections that asked for %s seconds ago are closed when there are as many as there may be',
  async (_what, bytes, comes) => {
    await listening({
      connectionLimits: { inAll: 3, perAddress: 100, perNetwork: 100, callerAt: () => ONE },
      requestTimeouts: { headersMs: 60_000, requestMs: 60_000 },
    });
    const reached = comes === 'answer' ? null : times(app.server, comes, 3);
    const idle = Array.from({ length: 3 }, () => connect(portOf(app), '127.0.0.1'));
    const answered = idle.map((socket) => new Promise((resolve) => socket.once('data', resolve)));
    const closed = idle.map((socket) => new Promise((resolve) => socket.once('close', resolve)));
    for (const socket of idle) socket.on('error', () => undefined).write(bytes);
    await (reached ?? Promise.all(answered));
    const clock = vi.spyOn(performance, 'now');
    const now = performance.now();
    clock.mockReturnValue(now + 5_000);
    onTestFinished(() => clock.mockRestore());
    const refused = connect(portOf(app), '127.0.0.1').on('error', () => undefined);
    await once(refused, 'close');
    await Promise.all(closed);
    const later = connect(portOf(app), '127.0.0.1');
    later.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(later, 'data');
    later.destroy();
  },
);

describe('a caller who does not read', () => {
  it('is cut off in the middle of a long answer, and a reader gets it whole', async () => {
    const body = 'x'.repeat(32 * 1_048_576);
    const handle = () => ({ status: 200, body });
    const long = aRoute({ method: 'GET', path: '/long', access: 'public', handle });
    await listening({ routes: [long], requestTimeouts: { writeMs: 1_000 } });
    const closed = new Promise<void>((resolve) =>
      app.server.once('connection', (socket) => socket.once('close', () => resolve())),
    );
    const silent = connect(portOf(app), '127.0.0.1').pause();
    silent.write('GET /long HTTP/1.1\r\nHost: x\r\n\r\n');
    await closed;
    // A reset: the system does not keep the rest of the answer for a reader that may never come.
    const [error] = await once(silent.resume(), 'error');
    expect((error as NodeJS.ErrnoException).code).toBe('ECONNRESET');
    const text = await exchangeBytes(app, `GET /long HTTP/1.1\r\nHost: x\r\n${CLOSE}`);
    expect(text.length).toBeGreaterThan(body.length);
  });

  it('is cut off too when the long answer was ready before the answer to an earlier request', async () => {
    const ready = Promise.withResolvers<void>();
    const handleLong = () => {
      setImmediate(ready.resolve);
      return { status: 200, body: 'x'.repeat(32 * 1_048_576) } as const;
    };
    const handleSlow = () => ready.promise.then(() => ({ status: 200, body: '{}' }) as const);
    const slow = aRoute({ method: 'GET', path: '/slow', access: 'public', handle: handleSlow });
    const long = aRoute({ method: 'GET', path: '/long', access: 'public', handle: handleLong });
    await listening({ routes: [slow, long], requestTimeouts: { writeMs: 1_000 } });
    const closed = new Promise<void>((resolve) =>
      app.server.once('connection', (socket) => socket.once('close', () => resolve())),
    );
    const silent = connect(portOf(app), '127.0.0.1').pause();
    silent.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\nGET /long HTTP/1.1\r\nHost: x\r\n\r\n');
    await closed;
    silent.on('error', () => undefined).destroy();
  });
});

describe('a caller who stalls', () => {
  const impatient = { requestTimeouts: { headersMs: 40, requestMs: 40, checkEveryMs: 10 } };

  it.each([
    ['in the head', 'GET /healthz HTTP/1.1\r\nHost:'],
    [
      'in the body',
      `POST /v1/lookup HTTP/1.1\r\n${KEYED}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{`,
    ],
  ])('%s gets 408 and is cut off', async (_where, bytes) => {
    expect(summary(await exchangeBytes(await listening(impatient), bytes))).toEqual([408, 'invalid_body']);
  });

  it('in a body that was refused already hears nothing more', async () => {
    const bytes = `POST /v1/lookup HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{`;

    expect(summary(await exchangeBytes(await listening(impatient), bytes))).toEqual([401, 'unauthorized']);
  });
});

describe('a server that closes', () => {
  it('finishes what is in flight and ends the connection with it', async () => {
    const started = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<Answer>();
    const handle = () => {
      started.resolve();
      return answer.promise;
    };
    app = aServer({ routes: [aRoute({ method: 'GET', path: '/slow', access: 'public', handle })] });
    app.addHook('preClose', async () => answer.resolve({ status: 200, body: 'done' }));
    await app.listen({ port: 0, host: '127.0.0.1' });
    const received = exchangeBytes(app, 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n');
    await started.promise;
    const closed = app.close();

    expect(await received).toMatch(/^HTTP\/1\.1 200 OK\r\n(.*\r\n)?connection: close\r\n.*done$/is);
    await closed;
  });

  it('survives a caller who leaves in the middle of a body', async () => {
    await listening();
    const socket = connect(portOf(app), '127.0.0.1');
    socket.write(
      `POST /v1/lookup HTTP/1.1\r\n${KEYED}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{`,
    );
    await once(app.server, 'request');
    socket.destroy();
    await once(socket, 'close');

    expect((await app.inject('/healthz')).statusCode).toBe(200);
  });
});

describe('requests that one caller sends without waiting for answers', () => {
  const GET = `GET /v1/slow HTTP/1.1\r\n${KEYED}\r\n`;
  const POST = `POST /v1/slow HTTP/1.1\r\n${KEYED}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{`;

  const slow = async (deps: Partial<ServerDeps> = {}) => {
    const waiting: (() => void)[] = [];
    const handle = (): Promise<Answer> =>
      new Promise((resolve) => waiting.push(() => resolve({ status: 200, body: '{}' })));
    const { server } = await listening({
      routes: [
        aRoute({ method: 'GET', path: '/v1/slow', handle }),
        aRoute({ method: 'POST', path: '/v1/slow', body: 'json', handle }),
      ],
      requestLimit: {
        perAddress: 3,
        perNetwork: 100,
        callerOf: ({ headers }) => ({ ...ONE, address: headers['x-caller']?.toString() ?? 'a caller' }),
      },
      ...deps,
    });
    const end = (): void => {
      for (const answer of waiting.splice(0)) answer();
    };
    return { server, waiting, end };
  };

  /** Sends some text on a connection of its own. */
  const opened = (text: string): { socket: Socket; statuses: () => string[] } => {
    let received = '';
    const socket = connect(portOf(app), '127.0.0.1', () => socket.write(text));
    socket.on('data', (chunk) => {
      received += chunk;
    });
    socket.on('error', () => undefined);
    return {
      socket,
      statuses: () => [...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => `${status}`),
    };
  };

  it('are refused beyond the limit, and other callers are not', async () => {
    const { waiting, end } = await slow();
    const greedy = opened(GET.repeat(5));
    await eventually(
      'three wait',
      () => waiting.length,
      (count) => count === 3,
    );
    const other = opened(GET.replace('Host', 'X-Caller: another\r\nHost'));
    await eventually(
      'another waits',
      () => waiting.length,
      (count) => count === 4,
    );
    end();
    await eventually('all are answered', greedy.statuses, ({ length }) => length === 5);
    expect(greedy.statuses()).toEqual(['200', '200', '200', '503', '503']);
    await eventually('the other is answered', other.statuses, ({ length }) => length === 1);
    expect(other.statuses()).toEqual(['200']);
    greedy.socket.write(GET);
    await eventually(
      'one more waits',
      () => waiting.length,
      (count) => count === 1,
    );
    end();
    greedy.socket.destroy();
    other.socket.destroy();
  });

  it('are refused beyond the limit of a network, whatever its addresses', async () => {
    const { waiting, end } = await slow({
      requestLimit: { perAddress: 3, perNetwork: 4, callerOf: anotherAddress },
    });
    const first = opened(GET.repeat(5));
    await eventually(
      'four wait',
      () => waiting.length,
      (count) => count === 4,
    );
    end();
    await eventually('all are answered', first.statuses, ({ length }) => length === 5);
    expect(first.statuses()).toEqual(['200', '200', '200', '200', '503']);
    first.socket.destroy();
  });

  it('count until their work has ended, also if the caller has left', async () => {
    const { server, waiting, end } = await slow();
    const first = opened(GET.repeat(3));
    await eventually(
      'three wait',
      () => waiting.length,
      (count) => count === 3,
    );
    first.socket.destroy();
    await eventually(
      'the connection has ended',
      () => new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count))),
      (count) => count === 0,
    );
    expect(await exchangeBytes(app, `GET /v1/slow HTTP/1.1\r\n${KEYED}${CLOSE}`)).toMatch(/^HTTP\/1\.1 503/);
    end();
    const next = opened(GET);
    await eventually(
      'one more waits',
      () => waiting.length,
      (count) => count === 1,
    );
    end();
    next.socket.destroy();
  });

  it('count no more where the caller leaves before the whole request has arrived', async () => {
    const { waiting, end } = await slow();
    for (let nth = 0; nth < 4; nth += 1) {
      const { socket } = opened(POST);
      await once(socket, 'connect');
      socket.end();
      await once(socket, 'close');
    }
    const next = opened(GET);
    await eventually(
      'it waits',
      () => waiting.length,
      (count) => count === 1,
    );
    end();
    next.socket.destroy();
  });

  it('count no more where the caller leaves while its key is looked up', async () => {
    const keys: (() => void)[] = [];
    const { server, waiting, end } = await slow({
      authenticate: () => new Promise((resolve) => keys.push(() => resolve(aKey))),
    });
    const left = Array.from({ length: 3 }, () => opened(POST));
    await eventually(
      'three keys are looked up',
      () => keys.length,
      (count) => count === 3,
    );
    for (const { socket } of left) socket.destroy();
    await eventually(
      'the connections have ended',
      () => new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count))),
      (count) => count === 0,
    );
    for (const found of keys.splice(0)) found();
    const next = opened(GET);
    await eventually(
      'another key is looked up, or the request is refused',
      () => keys.length + next.statuses().length,
      (count) => count === 1,
    );
    expect(next.statuses()).toEqual([]);
    for (const found of keys) found();
    await eventually(
      'it waits',
      () => waiting.length,
      (count) => count === 1,
    );
    end();
    next.socket.destroy();
  });
});
