import { get, type IncomingMessage } from 'node:http';
import { Counter, Registry } from 'prom-client';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  type OpsServer,
  type Readiness,
  sendJson,
  startOpsServer,
} from '../../platform/telemetry/ops-server.ts';

describe('the operations listener', () => {
  const registry = new Registry();
  const log = { error: vi.fn() };
  let readiness: () => Promise<Readiness> | Readiness;
  let server: OpsServer;
  const at = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${server.port}${path}`, init);

  beforeAll(async () => {
    new Counter({ name: 'visits_total', help: 'Visits', registers: [registry] }).inc(3);
    server = await startOpsServer({
      host: '127.0.0.1',
      port: 0,
      registry,
      readiness: () => readiness(),
      log,
      hostNames: ['api', 'Ops.internal'],
      handlers: {
        'POST /signals': (_request, response, url) =>
          sendJson(response, 202, { site: url.searchParams.get('site') }),
        'GET /broken': () => {
          throw new Error('broken');
        },
      },
    });
  });
  afterAll(() => server.close());

  it.each([
    ['127.0.0.1', 200],
    ['10.1.2.3:3001', 200],
    ['[::1]:3001', 200],
    ['localhost', 200],
    ['LOCALHOST:3001', 200],
    ['api:3001', 200],
    ['ops.internal.', 200],
    ['rebound.example', 403],
    ['rebound.example:3001', 403],
    ['127.0.0.1.rebound.example', 403],
    ['localhost.rebound.example', 403],
    ['api.rebound.example', 403],
  ])('answers a request with Host: %s with %i', async (host, status) => {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      get({ host: '127.0.0.1', port: server.port, path: '/livez', headers: { host } }, resolve).on(
        'error',
        reject,
      );
    });
    answer.resume();
    expect(answer.statusCode).toBe(status);
    expect(answer.headers['x-content-type-options']).toBe('nosniff');
  });

  it('is ready, or answers 503 with the reason', async () => {
    readiness = () => ({ ready: true, problems: [] });
    const ready = await at('/readyz');
    expect([ready.status, await ready.json()]).toEqual([200, { ready: true, problems: [] }]);

    readiness = async () => ({ ready: false, problems: ['the database is gone'] });
    const unready = await at('/readyz');
    expect([unready.status, await unready.json()]).toEqual([
      503,
      { ready: false, problems: ['the database is gone'] },
    ]);
  });

  it('is not ready when the check fails or never ends', async () => {
    readiness = () => Promise.reject(new Error('no connection'));
    expect(await (await at('/readyz')).json()).toEqual({ ready: false, problems: ['no connection'] });

    vi.useFakeTimers({ toFake: ['setTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
    readiness = () => {
      ask();
      return new Promise(() => {});
    };
    const answering = at('/readyz');
    await asked;
    vi.advanceTimersByTime(4_000);
    const answer = await answering;
    expect([answer.status, await answer.json()]).toEqual([
      503,
      { ready: false, problems: ['the readiness check took over 4 s'] },
    ]);
  });

  it('answers 404, 405 with Allow, and 500 with a log line', async () => {
    expect((await at('/nothing')).status).toBe(404);
    const wrong = await at('/signals');
    expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST']);
    expect((await at('/broken')).status).toBe(500);
    expect(log.error).toHaveBeenCalledWith(
      new Error('broken'),
      'the operations listener failed on GET /broken',
    );
  });
});
