import { EventEmitter } from 'node:events';
import { Agent, get, type IncomingMessage, type ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { afterEach, expect, it } from 'vitest';
import { limitPipelining, MAX_PIPELINED_REQUESTS } from '../../http/pipelining.ts';
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

afterEach(() => app.close());

it('serves a limited number of pipelined requests of a connection in a turn, and closes it after their answers', async () => {
  const text = await exchangeBytes(await listening(), GET.repeat(1_500) + LAST);

  expect(served).toBe(MAX_PIPELINED_REQUESTS);
  expect(text.match(/HTTP\/1\.1 200 /g)?.length ?? 0).toBeLessThanOrEqual(MAX_PIPELINED_REQUESTS);
});

it('answers the requests of a connection that pipelines a few', async () => {
  const text = await exchangeBytes(await listening(), GET.repeat(MAX_PIPELINED_REQUESTS - 2) + LAST);

  expect(text.match(/HTTP\/1\.1 200 /g)).toHaveLength(MAX_PIPELINED_REQUESTS - 1);
});

it('serves one request of each connection in a turn, however many it pipelines', async () => {
  const order: number[] = [];
  const serve = limitPipelining((request) => void order.push(Number(request.url)));
  const socket = { destroyed: false, pause: () => socket, resume: () => socket };
  for (let n = 1; n <= 4; n += 1) {
    const response = Object.assign(new EventEmitter(), { shouldKeepAlive: true });
    serve({ socket, url: String(n) } as unknown as IncomingMessage, response as unknown as ServerResponse);
  }
  const lengths = [order.length];
  for (let turn = 1; turn < 6; turn += 1) {
    await setImmediate();
    lengths.push(order.length);
  }
  const most = Math.max(...lengths.map((length, turn) => length - (lengths[turn - 1] ?? 0)));
  expect({ order, most }).toEqual({ order: [1, 2, 3, 4], most: 1 });
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
