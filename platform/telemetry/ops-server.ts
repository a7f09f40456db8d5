import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import pTimeout from 'p-timeout';
import type { Registry } from 'prom-client';
import type { Logger } from './log.ts';

/** Whether this process should get traffic; otherwise the problems, one line each. */
export interface Readiness {
  readonly ready: boolean;
  readonly problems: readonly string[];
}

/** Handles one path. An error becomes a 500 and a log line. */
export type OpsHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
) => Promise<void> | void;

export interface OpsServerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly registry: Pick<Registry, 'metrics' | 'contentType'>;
  readonly readiness: () => Promise<Readiness> | Readiness;
  /** Accepted host names, besides addresses and `localhost`. */
  readonly hostNames?: readonly string[];
  /** Further paths by `METHOD /path`. */
  readonly handlers?: Readonly<Record<`${'GET' | 'POST'} /${string}`, OpsHandler>>;
  readonly log: Pick<Logger, 'error'>;
}

export interface OpsServer {
  readonly port: number;
  /** Rejects new connections, closes idle ones and waits for running responses. */
  close(): Promise<void>;
}

/** Node does not count a connection without a request as idle, and it would block the close. */
const CUT_AFTER_MS = 2_000;
/** Below usual probe timeouts, so that the probe still gets the reason. */
const READINESS_LIMIT_MS = 4_000;

/**
 * Starts the operations listener, for the operator's own machines and never public: `GET /metrics` (Prometheus), `/livez`
 * (the event loop runs), `/readyz` (200, or 503 with the problems), and further handlers.
 * @throws if the port is taken
 */
export async function startOpsServer(options: OpsServerOptions): Promise<OpsServer> {
  const routes = new Map<string, OpsHandler>(Object.entries({ ...builtIn(options), ...options.handlers }));
  const isOwnHost = hostCheck(options.hostNames ?? []);
  const server = createServer((request, response) => {
    response.setHeader('x-content-type-options', 'nosniff');
    if (isOwnHost(request.headers.host, request)) void answer(routes, request, response, options.log);
    else sendJson(response, 403, { error: 'unknown_host' });
  });
  server.listen(options.port, options.host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      const cut = setTimeout(() => server.closeAllConnections(), CUT_AFTER_MS);
      server.close();
      server.closeIdleConnections();
      await once(server, 'close');
      clearTimeout(cut);
    },
  };
}

/**
 * Checks the Host header. A web page can make its own name resolve to this machine (DNS rebinding), but the browser then
 * sends that name.
 */
function hostCheck(
  names: readonly string[],
): (host: string | undefined, request: Pick<IncomingMessage, 'httpVersion'>) => boolean {
  const known = new Set(['localhost', ...names.map((name) => name.toLowerCase())]);
  return (host, { httpVersion }) => {
    // HTTP/1.0 has no Host header, and no browser uses it.
    if (host === undefined) return httpVersion === '1.0';
    const name = host
      .toLowerCase()
      .replace(/:\d{0,5}$/, '')
      .replace(/\.$/, '');
    return known.has(name) || isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0;
  };
}

/** Writes a JSON response; also for further handlers. */
export function sendJson(response: ServerResponse, status: number, body: object): void {
  const text = `${JSON.stringify(body)}\n`;
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
  });
  response.end(text);
}

function builtIn({ registry, readiness }: OpsServerOptions): Record<string, OpsHandler> {
  return {
    'GET /metrics': async (_request, response) => {
      const metrics = await registry.metrics();
      response.writeHead(200, { 'content-type': registry.contentType }).end(metrics);
    },
    'GET /livez': (_request, response) => sendJson(response, 200, { live: true }),
    'GET /readyz': async (_request, response) => {
      const { ready, problems } = await askReadiness(readiness);
      sendJson(response, ready ? 200 : 503, { ready, problems });
    },
  };
}

async function askReadiness(readiness: OpsServerOptions['readiness']): Promise<Readiness> {
  const message = `the readiness check took over ${READINESS_LIMIT_MS / 1000} s`;
  try {
    return await pTimeout(Promise.resolve(readiness()), { milliseconds: READINESS_LIMIT_MS, message });
  } catch (error) {
    return { ready: false, problems: [error instanceof Error ? error.message : String(error)] };
  }
}

async function answer(
  routes: ReadonlyMap<string, OpsHandler>,
  request: IncomingMessage,
  response: ServerResponse,
  log: OpsServerOptions['log'],
): Promise<void> {
  const url = URL.parse(request.url ?? '/', 'http://ops') ?? new URL('http://ops/');
  const method = request.method === 'HEAD' ? 'GET' : request.method;
  try {
    const handler = routes.get(`${method} ${url.pathname}`);
    if (handler !== undefined) return await handler(request, response, url);
    const allowed = ['GET', 'POST'].filter((other) => routes.has(`${other} ${url.pathname}`));
    if (allowed.length === 0) return sendJson(response, 404, { error: 'not_found' });
    response.setHeader('allow', allowed.join(', '));
    sendJson(response, 405, { error: 'method_not_allowed' });
  } catch (error) {
    log.error(error, `the operations listener failed on ${request.method} ${url.pathname}`);
    if (response.headersSent) response.destroy();
    else sendJson(response, 500, { error: 'internal_error' });
  }
}
