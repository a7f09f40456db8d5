import { setImmediate } from 'node:timers/promises';
import type { InjectOptions } from 'fastify';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { ServerDeps } from '../../http/server.ts';
import { aKey, aRoute, aServer, authorized } from './shell.ts';

let now: number;
beforeEach(() => {
  now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
});
afterEach(() => void vi.restoreAllMocks());

/** A server whose handler takes a millisecond. @returns what it has handled, and a function that calls it */
const aBusyServer = async (deps: Partial<ServerDeps> = {}) => {
  const handled: string[] = [];
  const handle = () => {
    handled.push('');
    now += 1;
    return { status: 204, body: null };
  };
  const routes = [
    aRoute({ method: 'POST', path: '/v1/lookup', body: 'json', handle }),
    aRoute({ method: 'GET', path: '/v1/trackers', handle }),
  ];
  const app = aServer({ routes, ...deps });
  await app.ready();
  const ask = (count: number, options: InjectOptions) =>
    // It begins with the first that waits for it.
    Array.from({ length: count }, async () => await app.inject({ headers: authorized, ...options }));
  return { app, handled, ask };
};

it.each<[string, Partial<ServerDeps>, InjectOptions]>([
  ['have their bodies end together', {}, { method: 'POST', url: '/v1/lookup', payload: { ip: '192.0.2.1' } }],
  ['wait for one lookup of a host', { isCustomDomain: async () => false }, { url: '/v1/trackers' }],
  ['wait for one lookup of a key', { authenticate: async () => aKey }, { url: '/v1/trackers' }],
])('handles requests that %s a few in a turn', async (_, deps, options) => {
  const { app, handled, ask } = await aBusyServer(deps);
  const answers = ask(100, options);
  const steps: number[] = [];
  for (let before = 0; handled.length < 100; before = handled.length) {
    await setImmediate();
    steps.push(handled.length - before);
  }
  expect(Math.max(...steps)).toBeLessThanOrEqual(4);
  for (const { statusCode } of await Promise.all(answers)) expect(statusCode).toBe(204);
  await app.close();
});

it('handles those of a network with few before the others of one with many', async () => {
  const callerOf: ServerDeps['requestLimit'] = {
    perAddress: 1_000,
    perNetwork: 1_000,
    callerOf: ({ url = '' }) => ({ address: url, network: url }),
  };
  const { app, handled, ask } = await aBusyServer({
    requestLimit: callerOf,
    isCustomDomain: async () => false,
  });
  const many = ask(100, { url: '/v1/trackers?many' });
  const few = ask(2, { url: '/v1/trackers?few' });
  await Promise.all(few);
  expect(handled.length).toBeLessThan(20);
  await Promise.all(many);
  await app.close();
});
