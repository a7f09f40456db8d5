import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import type { Reply } from '../../http/contract/route.ts';
import { eventually } from '../support/eventually.ts';
import { aRoute, aServer, exchangeBytes, portOf, TOKEN, uuid } from './shell.ts';

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
    expect(text).toMatch(/^connection: keep-alive\r\nkeep-alive: timeout=72, max=10000\r$/im);
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

it('connections beyond the ceiling are closed, and may be opened again after others have ended', async () => {
  await listening({ maxConnections: 2 });
  const open = async (): Promise<Socket | null> => {
    const socket = connect(portOf(app), '127.0.0.1').on('error', () => undefined);
    socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    return Promise.race([once(socket, 'data').then(() => socket), once(socket, 'close').then(() => null)]);
  };
  const first = await Promise.all([open(), open()]);
  expect(await open()).toBeNull();
  for (const socket of first) socket?.destroy();
  const again = await eventually('there is room again', open, (socket) => socket !== null);
  again?.destroy();
});

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

  it('is cut off although the system has taken the answer for it, unless it asks again', async () => {
    const body = Buffer.alloc(1_048_576);
    const long = aRoute({
      method: 'GET',
      path: '/long',
      access: 'public',
      handle: () => ({ status: 200, body }),
    });
    await listening({ routes: [long], requestTimeouts: { writeMs: 300 } });
    const closed: Socket[] = [];
    const bytes = 'GET /long HTTP/1.1\r\nHost: x\r\n\r\n';
    const sockets = Array.from({ length: 20 }, (_, index) => {
      const socket = connect(portOf(app), '127.0.0.1').on('error', () => undefined);
      socket.on('close', () => closed.push(socket)).write(bytes);
      return index === 0 ? socket.resume() : socket.pause();
    });
    const [reader, ...silent] = sockets as [Socket, ...Socket[]];
    await once(reader, 'data');
    const asking = setInterval(() => reader.write('GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n'), 50);
    const open = () => new Promise((resolve) => app.server.getConnections((_error, count) => resolve(count)));
    await eventually('all but the reader are cut', open, (count) => count === 1);
    expect(closed).not.toContain(reader);
    clearInterval(asking);
    for (const socket of [reader, ...silent]) socket.destroy();
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
});

describe('a server that closes', () => {
  it('finishes what is in flight and ends the connection with it', async () => {
    const started = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<Reply>();
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

  it('cuts connections that send no whole request, and still answers a whole one', {
    timeout: 10_000,
  }, async () => {
    const answer = Promise.withResolvers<Reply>();
    const started = Promise.withResolvers<void>();
    const handle = () => {
      started.resolve();
      return answer.promise;
    };
    await listening({ routes: [aRoute({ method: 'GET', path: '/slow', access: 'public', handle })] });
    const received = exchangeBytes(app, 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n');
    await started.promise;
    const silent = [
      '',
      'GET /slow HTTP/1.1\r\n',
      'POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf',
    ];
    const ends = silent.map(async (bytes) => {
      const socket = connect(portOf(app), '127.0.0.1')
        .on('error', () => undefined)
        .resume();
      socket.write(bytes);
      await once(socket, 'close');
    });
    await eventually(
      'all are connected',
      () => new Promise((resolve) => app.server.getConnections((_error, count) => resolve(count))),
      (count) => count === 4,
    );
    const closed = app.close();
    await Promise.all(ends);
    answer.resolve({ status: 200, body: 'done' });
    expect(await received).toMatch(/done$/);
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
