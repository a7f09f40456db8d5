import { connect } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { ApiKey, ApiRequest, KeyRoute, Route, RouteTable } from '../../http/contract/route.ts';
import { buildServer, type ServerDeps } from '../../http/server/server.ts';

export const aKey: ApiKey = {
  kind: 'key',
  key_id: 'key-1',
  partner_id: 'partner-1',
  name: 'test',
  requests_per_second: 50,
  new_enrichments_per_day: null,
  pending_enrichments: 10_000,
  company_signals: false,
};

export const TOKEN = 'dp_a-good-key';
export const authorized = { authorization: `Bearer ${TOKEN}` };

/** What the handler saw, as its answer. */
const echo = (request: ApiRequest) => ({
  status: 200,
  body: JSON.stringify({ params: request.params, query: request.query, body: request.body ?? null }),
});

export function aRoute(
  route: Partial<Omit<KeyRoute, 'access'>> & Pick<Route, 'method' | 'path'> & { access?: Route['access'] },
): Route {
  return { access: 'key', body: 'none', bodyLimit: 1_024, handle: echo, ...route } as Route;
}

export const someRoutes: RouteTable = [
  aRoute({ method: 'GET', path: '/healthz', access: 'public' }),
  aRoute({ method: 'GET', path: '/v1/lookup', targetLimit: 512 }),
  aRoute({ method: 'POST', path: '/v1/lookup', targetLimit: 512, body: 'json' }),
  aRoute({ method: 'GET', path: '/v1/trackers' }),
  aRoute({ method: 'DELETE', path: '/v1/trackers/:tracker_id' }),
  aRoute({ method: 'POST', path: '/v1/trackers/:tracker_id/delete', body: 'optional' }),
];

/** Lines that the server logged. */
export interface Logged {
  readonly details: Record<string, unknown>;
  readonly message: string;
}

export function aServer(deps: Partial<ServerDeps> & { logged?: Logged[] } = {}): FastifyInstance {
  const logged = deps.logged ?? [];
  const note = (details: object, message: string) => void logged.push({ details: { ...details }, message });
  return buildServer({
    routes: someRoutes,
    authenticate: (token) => (token === TOKEN ? aKey : null),
    admit: () => null,
    quotaOf: () => ({ policy: '', limit: '' }),
    clock: { now: () => Date.UTC(2026, 2, 14) },
    log: { error: note, warn: note },
    guard: {
      hosts: { isOwn: () => false, isCustomDomain: () => false },
      misfits: { noteForwarding: () => {}, noteHost: () => {} },
      probes: { note: () => {} },
    },
    maxConnections: 1_000,
    ...deps,
  });
}

/** The port of a listening server. */
export function portOf(app: FastifyInstance): number {
  const address = app.server.address();
  if (address === null || typeof address === 'string') throw new Error('the server does not listen');
  return address.port;
}

/** Sends bytes to a listening server and gives all that comes back until the connection ends. */
export function exchangeBytes(app: FastifyInstance, ...packets: (string | Buffer)[]): Promise<string> {
  return new Promise((resolve) => {
    let received = '';
    const socket = connect(portOf(app), '127.0.0.1', () => {
      for (const packet of packets) socket.write(packet);
    });
    socket.setEncoding('latin1');
    socket.on('data', (text) => {
      received += text;
    });
    // A reset after the answer is how a cut connection looks from here.
    socket.on('error', () => {});
    socket.on('close', () => resolve(received));
  });
}

export const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
