/** The HTTP shell: Fastify routes and owns the connections; what is refused, and in which order, is ours. */
import { randomUUID } from 'node:crypto';
import { METHODS } from 'node:http';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Clock } from '../platform/clock.ts';
import { serveInSpan } from '../platform/spans.ts';
import type { Log } from './conclusion.ts';
import { type ConnectionLimits, limitConnections } from './connection-limits.ts';
import { type Connections, watchConnections } from './drain.ts';
import { type ErrorCode, type RefusalOptions, refusal } from './error-catalog.ts';
import { Exchange } from './exchange.ts';
import { ambiguityOf } from './message-framing.ts';
import { exceedsTarget, Pipeline, type PipelineDeps } from './pipeline.ts';
import { refuseConnect, refuseRaw } from './raw-refusals.ts';
import { countRequests, type RequestLimit, type RequestsUnderWay } from './requests-under-way.ts';
import type { Answer, Route, RouteTable } from './route.ts';
import { type Sending, send } from './send.ts';

/** How long the server waits, in milliseconds. */
export interface RequestTimeouts {
  /** For the head of a request; then 408. At most `requestMs`. */
  readonly headersMs: number;
  /** For a whole request, body included; then 408. */
  readonly requestMs: number;
  /** Between two requests on a connection. Longer than a proxy's, which then never meets a closing one. */
  readonly keepAliveMs: number;
  /** How often the first two are looked at. */
  readonly checkEveryMs: number;
  /** For authentication, admission or a handler; then 503 `backend_timeout`. */
  readonly handlerMs: number;
  /** For the caller to take an answer; then the connection is cut. */
  readonly writeMs: number;
}

const defaultTimeouts: RequestTimeouts = {
  headersMs: 10_000,
  requestMs: 20_000,
  keepAliveMs: 72_000,
  checkEveryMs: 1_000,
  handlerMs: 5_000,
  writeMs: 60_000,
};

export interface ServerDeps extends Pick<PipelineDeps, 'authenticate' | 'admit'> {
  readonly routes: RouteTable;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether a Host has nothing but the paths under `/tracking/`. */
  readonly isCustomDomain?: (host: string) => boolean | Promise<boolean>;
  readonly requestTimeouts?: Partial<RequestTimeouts>;
  /** Whether callers reach the service by https alone. */
  readonly isHttps?: boolean;
  readonly connectionLimits?: ConnectionLimits;
  readonly requestLimit?: RequestLimit;
  /** Told of every answer of a route, for metrics. */
  readonly onAnswer?: (route: Route, answer: Answer, milliseconds: number) => void;
}

/** A server for these routes, not yet listening: `listen` serves, `inject` tests, `close` drains. */
export function buildServer(deps: ServerDeps): FastifyInstance {
  const timeouts = { ...defaultTimeouts, ...deps.requestTimeouts };
  const headers = { ...NO_SNIFFING, ...(deps.isHttps ? STRICT_TRANSPORT : {}) };
  const sending: Sending = { closing: false, headers, writeMs: timeouts.writeMs };
  const { app, connections } = bareServer(timeouts, sending);
  if (deps.connectionLimits) limitConnections(app.server, deps.connectionLimits);
  const underWay = countRequests(deps.requestLimit);
  const pipeline = new Pipeline({
    authenticate: deps.authenticate,
    admit: deps.admit,
    log: deps.log,
    handlerMs: timeouts.handlerMs,
    gone: ({ raw }) => underWay.leave(raw),
    deliver: ({ route, raw, response, id, startedAt }, answer) => {
      underWay.leave(raw);
      send(raw, response, id, answer, route.path.startsWith('/v1/'), sending);
      deps.onAnswer?.(route, answer, performance.now() - startedAt);
    },
  });
  addRoutes(app, {
    routes: deps.routes,
    isCustomDomain: deps.isCustomDomain ?? (() => false),
    serve: (route, request, reply) => {
      connections.answering(reply.raw);
      const { raw, id } = request;
      const params = request.params as PathParams;
      const exchange = new Exchange(route, raw, reply.raw, id, params, deps.clock.now());
      serveInSpan(route.path, raw, reply.raw, id, () => pipeline.enter(exchange));
    },
    refuse: (request, reply, code, options) => {
      underWay.leave(request.raw);
      refuser(sending)(request, reply, code, options);
    },
    underWay,
  });
  return app;
}

type Refuse = ReturnType<typeof refuser>;

/** Refuses what belongs to no route. */
function refuser(sending: Sending) {
  return ({ raw, id }: FastifyRequest, reply: FastifyReply, code: ErrorCode, options?: RefusalOptions) =>
    send(raw, reply.raw, id, refusal({ id }, code, options), true, sending);
}

/** Fastify without what it would answer by itself: bodies, 404s, 503s while closing and broken requests. */
function bareServer(
  timeouts: RequestTimeouts,
  sending: Sending,
): { app: FastifyInstance; connections: Connections } {
  const app = Fastify({
    genReqId: () => randomUUID(),
    exposeHeadRoutes: false,
    return503OnClosing: false,
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    // Longer than any head that the parser lets through: a path id of any length is its own route's to refuse.
    routerOptions: { maxParamLength: MAX_HEAD_BYTES, querystringParser: () => NO_QUERY },
    clientErrorHandler: refuseRaw(sending.headers),
    frameworkErrors: (_error, request, reply) => {
      const refuse = refuser(sending);
      if (!refuseAmbiguous(request, reply, refuse)) refuse(request, reply, 'not_found');
    },
    http: {
      headersTimeout: timeouts.headersMs,
      connectionsCheckingInterval: timeouts.checkEveryMs,
      maxHeaderSize: MAX_HEAD_BYTES,
      // Node's own 400 has no X-Request-ID; the routes ask for the header themselves.
      requireHostHeader: false,
    },
  });
  app.server.on('connect', refuseConnect(sending.headers));
  // An expectation other than 100-continue may be ignored (RFC 9110 section 10.1.1); Node's own 417 has no X-Request-ID.
  app.server.on('checkExpectation', (raw, response) => app.server.emit('request', raw, response));
  const connections = watchConnections(app.server);
  app.addHook('preClose', (done) => {
    sending.closing = true;
    connections.cutSilent();
    done();
  });
  return { app, connections };
}

/** Browsers take an answer for what it says that it is. */
const NO_SNIFFING = { 'x-content-type-options': 'nosniff' };
/** For a year (RFC 6797); custom domains are https as well. */
const STRICT_TRANSPORT = { 'strict-transport-security': 'max-age=31536000' };

const MAX_HEAD_BYTES = 16_384;
const NO_QUERY = {};

interface Routing {
  readonly routes: RouteTable;
  isCustomDomain(host: string): boolean | Promise<boolean>;
  serve(route: Route, request: FastifyRequest, reply: FastifyReply): void;
  readonly refuse: Refuse;
  readonly underWay: RequestsUnderWay;
}

/**
 * Registers every method on every path, so that the router's own decoding of a path decides between 404 and
 * 405. All is answered in `onRequest`: behind it, Fastify judges content types before the key was looked at.
 */
function addRoutes(app: FastifyInstance, routing: Routing): void {
  const { routes, isCustomDomain, serve, refuse } = routing;
  for (const method of ROUTED_METHODS) {
    if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
  }
  for (const [path, onPath] of Map.groupBy(routes, (route) => route.path)) {
    const add = (methods: readonly string[], answer: Respond) =>
      on(app, path, methods, routing, path.startsWith('/tracking/') ? answer : exceptOnCustomDomains(answer));
    for (const route of onPath) add(methodsOf(route), serve.bind(null, route));
    const allowed = onPath.flatMap(methodsOf);
    const options = { headers: { allow: allowed.join(', ') } };
    const targetLimit = onPath[0]?.targetLimit;
    const others = ROUTED_METHODS.filter((method) => !allowed.includes(method));
    add(others, (request, reply) => {
      if (exceedsTarget(targetLimit, request.raw.url)) refuse(request, reply, 'uri_too_long');
      else refuse(request, reply, 'method_not_allowed', options);
    });
  }
  on(app, '*', ROUTED_METHODS, routing, (request, reply) => refuse(request, reply, 'not_found'));

  /** Under a customer's name there is no API to find: its cookies and pages are not the service's to touch. */
  function exceptOnCustomDomains(answer: Respond): Respond {
    return (request, reply) => {
      const judge = (isCustom: boolean): void => {
        if (isCustom) refuse(request, reply, 'not_found');
        else answer(request, reply);
      };
      const isCustom = isCustomDomain(request.raw.headers.host ?? '');
      if (typeof isCustom === 'boolean') judge(isCustom);
      // Where that cannot be found out, the path's own rules are enough.
      else void isCustom.then(judge, () => judge(false));
    };
  }
}

type Respond = (request: FastifyRequest, reply: FastifyReply) => void;

/** Every method but CONNECT, which Node does not hand over as a request. */
const ROUTED_METHODS = METHODS.filter((method) => method !== 'CONNECT');

/** HEAD goes with GET (RFC 9110 section 9.3.2), except under /v1, where contract, Requests 8 excludes it. */
function methodsOf({ method, path }: Route): string[] {
  return method === 'GET' && !path.startsWith('/v1/') ? ['GET', 'HEAD'] : [method];
}

type PathParams = Readonly<Record<string, string>>;

function on(
  app: FastifyInstance,
  url: string,
  method: readonly string[],
  { refuse, underWay }: Pick<Routing, 'refuse' | 'underWay'>,
  answer: Respond,
): void {
  const hasParams = url.includes(':');
  app.route({
    method: [...method],
    url,
    onRequest: (request, reply) => {
      // The router takes an empty segment for a parameter, but /v1/trackers/ is not /v1/trackers/:tracker_id.
      const empty = hasParams && Object.values(request.params as PathParams).includes('');
      if (refuseAmbiguous(request, reply, refuse)) return;
      if (empty) refuse(request, reply, 'not_found');
      else if (!underWay.enter(request.raw)) refuse(request, reply, 'api_busy');
      else answer(request, reply);
    },
    handler: unreachable,
  });
}

const CLOSE = { connection: 'close' };

/** @returns whether it refused the request */
function refuseAmbiguous(request: FastifyRequest, reply: FastifyReply, refuse: Refuse): boolean {
  const message = ambiguityOf(request.raw);
  if (message !== null) refuse(request, reply, 'invalid_body', { message, headers: CLOSE });
  return message !== null;
}

/** Fastify demands a handler; `onRequest` never goes on to it. */
function unreachable(): never {
  throw new Error('every request is answered in onRequest');
}
