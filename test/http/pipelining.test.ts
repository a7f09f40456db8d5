import { EventEmitter, once } from 'node:events';
import { Agent, get, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { limitPipelining, MAX_PIPELINED_REQUESTS, MAX_WAITING_IN_ALL } from '../../http/pipelining.ts';
import { aRoute, aServer, exchangeBytes } from './shell.ts';

const GET = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n';
const LAST = 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';

let app: FastifyInstance;
let served = 0;

const listening = async (): Promise<FastifyInstance> => {
  served = 0;
  const handle = () => {
    served += 1;
    return { status: 200, body: '{}' } as const;
  };
  app = aServer({ routes: [aRoute({ method: 'GET', path: '/healthz', access: 'public', handle })] });
  await app.listen({ port: 0, host: '127.0.0.1' });
  return app;
};

afterEach(() => app?.close());

it('serves a limited number of pipelined requests of a connection in a turn, and closes it after their answers', async () => {
  const text = await exchangeBytes(await listening(), GET.repeat(1_500) + LAST);

  expect(served).toBe(MAX_PIPELINED_REQUESTS);
  expect(text.match(/HTTP\/1\.1 200 /g)?.length ?? 0).toBeLessThanOrEqual(MAX_PIPELINED_REQUESTS);
});

it('answers the requests of a connection that pipelines a few', async () => {
  const text = await exchangeBytes(await listening(), GET.repeat(MAX_PIPELINED_REQUESTS - 2) + LAST);

  expect(text.match(/HTTP\/1\.1 200 /g)).toHaveLength(MAX_PIPELINED_REQUESTS - 1);
});

/** A connection whose requests arrive all at once. */
const aConnection = (serve: RequestListener, taking: { readonly writableLength: number } | null = null) => {
  const socket = { destroyed: false, pause: () => socket, resume: () => socket };
  if (taking) Object.defineProperty(socket, 'writableLength', { get: () => taking.writableLength });
  return (count: number): void => {
    for (let n = 1; n <= count; n += 1) {
      const response = Object.assign(new EventEmitter(), { shouldKeepAlive: true });
      serve({ socket, url: String(n) } as unknown as IncomingMessage, response as unknown as ServerResponse);
    }
  };
};

it('serves one request of each connection in a turn, however many it pipelines', async () => {
  const order: number[] = [];
  aConnection(limitPipelining((request) => void order.push(Number(request.url))))(4);
  const lengths = [order.length];
  for (let turn = 1; turn < 6; turn += 1) {
    await setImmediate();
    lengths.push(order.length);
  }
  const most = Math.max(...lengths.map((length, turn) => length - (lengths[turn - 1] ?? 0)));
  expect({ order, most }).toEqual({ order: [1, 2, 3, 4], most: 1 });
});

it('serves fewer requests that wait, of all connections together, while the turns are long', async () => {
  let [now, begun] = [0, 0];
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  onTestFinished(() => void vi.restoreAllMocks());
  const serve = limitPipelining((_, response) => {
    begun += 1;
    now += 1;
    process.nextTick(() => response.emit('close'));
  });
  for (let n = 0; n < 200; n += 1) aConnection(serve)(50);
  for (let turn = 0; turn < 8; turn += 1) await setImmediate();
  for (let turn = 0; turn < 20; turn += 1) {
    const before = begun;
    await setImmediate();
    expect(begun - before).toBeLessThanOrEqual(20);
    expect(begun - before).toBeGreaterThan(0);
  }
});

it('serves no further request of a connection until it takes the answers before', async () => {
  const taking = { writableLength: 0 };
  const responses: ServerResponse[] = [];
  const serve = limitPipelining((_, response) => {
    responses.push(response);
    taking.writableLength = 300_000;
  });
  aConnection(serve, taking)(3);
  for (let turn = 0; turn < 5; turn += 1) await setImmediate();
  expect(responses).toHaveLength(1);
  taking.writableLength = 0;
  responses[0]?.emit('close');
  await setImmediate();
  await setImmediate();
  expect(responses).toHaveLength(2);
});

it('serves connections that pipeline too many one request at a time, all together', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  let begun = 0;
  const serve = limitPipelining((_, response) => {
    begun += 1;
    response.emit('close');
  });
  for (let n = 0; n < 3; n += 1) aConnection(serve)(2 * MAX_PIPELINED_REQUESTS);
  vi.advanceTimersByTime(100);
  const before = begun;
  vi.advanceTimersByTime(10);
  expect(begun - before).toBe(10);
});

it('keeps two requests of a connection while those of others that wait are many', async () => {
  let kept = 0;
  const serve = limitPipelining(() => undefined);
  const counted: RequestListener = (request, response) => {
    const before = response.shouldKeepAlive;
    serve(request, response);
    if (before && !response.shouldKeepAlive) kept += 1;
  };
  const count = Math.ceil(MAX_WAITING_IN_ALL / (MAX_PIPELINED_REQUESTS - 2));
  for (let n = 0; n < count; n += 1) aConnection(counted)(MAX_PIPELINED_REQUESTS - 1);
  expect(kept).toBeLessThanOrEqual(1);
  const before = kept;
  for (let n = 0; n < 10; n += 1) aConnection(counted)(1);
  expect(kept).toBe(before);
  for (let n = 0; n < 10; n += 1) aConnection(counted)(3);
  expect(kept).toBe(before + 10);
});

it('keeps no request of a connection that pipelines too many, but those that it answers', async () => {
  const server = await listening();
  let parsed = 0;
  server.server.on('request', () => {
    parsed += 1;
  });
  await exchangeBytes(server, GET.repeat(1_500));
  expect(parsed).toBe(MAX_PIPELINED_REQUESTS);
});

it('reads no more of a connection while requests of it wait, and then goes on', async () => {
  const held = Promise.withResolvers<void>();
  const handle = async () => {
    await held.promise;
    return { status: 200, body: '{}' } as const;
  };
  app = aServer({
    routes: [
      aRoute({ method: 'GET', path: '/held', access: 'public', handle }),
      aRoute({
        method: 'GET',
        path: '/healthz',
        access: 'public',
        handle: () => ({ status: 200, body: '' }),
      }),
    ],
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  const connection = once(app.server, 'connection');
  const long = `GET /held HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(8_000)}\r\n\r\n`;
  const answers = exchangeBytes(app, long.repeat(99) + long.replace('Host', 'Connection: close\r\nHost'));
  const [socket] = (await connection) as [Socket];
  for (let n = 0; n < 20; n += 1) await exchangeBytes(app, LAST);
  expect(socket.bytesRead).toBeLessThan(200_000);
  held.resolve();
  expect((await answers).match(/HTTP\/1\.1 200 /g)).toHaveLength(100);
});

it('stops reading a connection that has sent more than it may pipeline', async () => {
  const server = await listening();
  const closed = new Promise<number>((resolve) =>
    server.server.once('connection', (socket) => socket.once('close', () => resolve(socket.bytesRead))),
  );
  await exchangeBytes(server, GET.repeat(20_000));
  // The first reads are parsed as a whole; what has not arrived by then is never read.
  expect(await closed).toBeLessThan((GET.length * 20_000) / 2);
});

it('answers any number of requests of a connection over several turns', async () => {
  const server = await listening();
  const { port } = server.server.address() as { port: number };
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let n = 0; n < 3 * MAX_PIPELINED_REQUESTS; n += 1) {
    await new Promise<void>((resolve, reject) => {
      get({ port, host: '127.0.0.1', path: '/healthz', agent }, (response) => {
        response.resume().on('end', resolve);
      }).on('error', reject);
    });
  }
  agent.destroy();

  expect(served).toBe(3 * MAX_PIPELINED_REQUESTS);
});
