import { Agent, get } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { afterEach, expect, it } from 'vitest';
import { MAX_REQUESTS_PER_TURN } from '../../http/pipelining.ts';
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

  expect(served).toBe(MAX_REQUESTS_PER_TURN);
  expect(text.match(/HTTP\/1\.1 200 /g)?.length ?? 0).toBeLessThanOrEqual(MAX_REQUESTS_PER_TURN);
});

it('answers the requests of a connection that pipelines a few', async () => {
  const text = await exchangeBytes(await listening(), GET.repeat(MAX_REQUESTS_PER_TURN - 2) + LAST);

  expect(text.match(/HTTP\/1\.1 200 /g)).toHaveLength(MAX_REQUESTS_PER_TURN - 1);
});

it('answers any number of requests of a connection over several turns', async () => {
  const server = await listening();
  const { port } = server.server.address() as { port: number };
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let n = 0; n < 3 * MAX_REQUESTS_PER_TURN; n += 1) {
    await new Promise<void>((resolve, reject) => {
      get({ port, host: '127.0.0.1', path: '/healthz', agent }, (response) => {
        response.resume().on('end', resolve);
      }).on('error', reject);
    });
  }
  agent.destroy();

  expect(served).toBe(3 * MAX_REQUESTS_PER_TURN);
});
