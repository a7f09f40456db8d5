/** The HTTP server: Fastify with this service's limits, hooks and refusals. */
import { randomUUID } from 'node:crypto';
import { METHODS } from 'node:http';
import Fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type onRequestHookHandler,
} from 'fastify';
import type { Clock } from '../platform/clock.ts';
import { type AdmissionDeps, admissionHooks, exceedsTarget, refuse } from './admission.ts';
import { type ConnectionLimits, limitConnections } from './connection-limits.ts';
import { watchConnections } from './drain.ts';
import { refusal } from './error-catalog.ts';
import { BackendTimeout } from './failures.ts';
import { ambiguityOf } from './message-framing.ts';
import { onBehalfOf } from './on-behalf-of.ts';
import { refuseConnect, refuseRaw } from './raw-refusals.ts';
import { countAnswer, type Replies, setHead, transmit, writeHead } from './replies.ts';
import { addBodyParser, refuseBody } from './request-body.ts';
import { createErrorHandler, createFailed, type Log } from './request-errors.ts';
import { countRequests, type RequestLimit } from './requests-under-way.ts';
import type { Answer, Route, RouteTable } from './route.ts';
import { decorateRequests, type ServedRequest } from './served-request.ts';

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

export interface ServerDeps extends AdmissionDeps {
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
  /** Called with the status of every answer of a route, for metrics. */
  readonly onAnswer?: (route: Route, status: number, milliseconds: number) => void;
}

/** A server for these routes, not yet listening: `listen` serves, `inject` tests, `close` drains. */
export function buildServer(deps: ServerDeps): FastifyInstance {
  const timeouts = { ...defaultTimeouts, ...deps.requestTimeouts };
  const headers = { ...NO_SNIFFING, ...(deps.isHttps ? STRICT_TRANSPORT : {}) };
  const replies: Replies = { closing: false, headers, writeMs: timeouts.writeMs };
  const app = createFastify(timeouts, replies);
  if (deps.connectionLimits) limitConnections(app.server, deps.connectionLimits);
  const connections = watchConnections(app.server);
  app.addHook('preClose', (done) => {
    replies.closing = true;
    connections.cutSilent();
    done();
  });
  const underWay = countRequests(deps.requestLimit);
  const failed = createFailed(deps.log);
  const inTime = timeLimit(timeouts.handlerMs, failed);
  decorateRequests(app);
  addBodyParser(app);
  app.setErrorHandler(createErrorHandler(failed, underWay, headers));
  app.setReplySerializer((answer) => (answer as Answer).body as string);

  const guard =
    (url: string): onRequestHookHandler =>
    (request, reply, done) => {
      reply.headers(headers);
      if (refuseAmbiguous(request, reply)) return;
      // The router takes an empty segment for a parameter, but /v1/trackers/ is not /v1/trackers/:tracker_id.
      const isEmpty = url.includes(':') && Object.values(request.params as object).includes('');
      if (isEmpty) refuse(request, reply, 'not_found');
      else if (!underWay.enter(request.raw)) refuse(request, reply, 'api_busy');
      else done();
    };

  const isCustomDomain = deps.isCustomDomain ?? (() => false);
  /** A customer's domain has no API, pages or cookies of this service: 404 for all but `/tracking/`. */
  const refuseOnCustomDomains: onRequestHookHandler = (request, reply, done) => {
    const judge = (isCustom: boolean): void => {
      if (isCustom) refuse(request, reply, 'not_found');
      else done();
    };
    const isCustom = isCustomDomain(request.raw.headers.host ?? '');
    if (typeof isCustom === 'boolean') judge(isCustom);
    // The path's own rules are enough where the lookup of the domain fails.
    else void isCustom.then(judge, () => judge(false));
  };
  const guards = (url: string) =>
    url.startsWith('/tracking/') ? [guard(url)] : [guard(url), refuseOnCustomDomains];

  /** Registers methods that are refused on a path, whatever comes with them: before the body is looked at. */
  const addRefusal = (url: string, method: string[], refuseRequest: Refuse): void => {
    app.route({
      method,
      url,
      onRequest: [...guards(url), (request, reply) => refuseRequest(request, reply)],
      preSerialization: setHead(replies, true),
      onSend: transmit(replies, underWay),
      handler: unreachable,
    });
  };

  const addRoute = (route: Route): void => {
    const { path, answered } = route;
    const head = setHead(replies, path.startsWith('/v1/'));
    const fail = (request: { readonly id: string }, failure: unknown) => failed(request, failure, route);
    app.route({
      method: methodsOf(route),
      url: path,
      ...(route.bodyLimit > 0 && { bodyLimit: route.bodyLimit }),
      config: { route },
      onRequest: [...guards(path), ...admissionHooks(route, { ...deps, connections, inTime })],
      preValidation: refuseBody,
      preSerialization: answered ? [countAnswer(answered, fail), head] : head,
      onSend: transmit(replies, underWay, (status, ms) => deps.onAnswer?.(route, status, ms)),
      handler: (request) => {
        const work = () => route.handle(request as ServedRequest);
        const answer = request.key ? onBehalfOf(request.key.partner_id, work) : work();
        return answer instanceof Promise ? inTime(request, route, answer) : answer;
      },
    });
  };

  for (const method of ROUTED_METHODS) {
    // Fastify would parse the body of OPTIONS, which is ignored here like the one of GET.
    const isBodyless = method === 'OPTIONS';
    if (isBodyless || !app.supportedMethods.includes(method))
      app.addHttpMethod(method, { overrideExisting: isBodyless });
  }
  for (const [path, onPath] of Map.groupBy(deps.routes, (route) => route.path)) {
    for (const route of onPath) addRoute(route);
    const allowed = onPath.flatMap(methodsOf);
    const others = ROUTED_METHODS.filter((method) => !allowed.includes(method));
    // Registered, so that the router's own decoding of a path decides between 404 and 405.
    addRefusal(path, others, (request, reply) => {
      if (exceedsTarget(onPath[0]?.targetLimit, request.raw.url)) refuse(request, reply, 'uri_too_long');
      else refuse(request, reply, 'method_not_allowed', { headers: { allow: allowed.join(', ') } });
    });
  }
  // A route instead of `setNotFoundHandler`: that one comes after the body, and `OPTIONS *` does not reach it.
  addRefusal('*', ROUTED_METHODS, (request, reply) => refuse(request, reply, 'not_found'));
  return app;
}

type Refuse = (request: FastifyRequest, reply: FastifyReply) => void;

/** Fastify with the limits of this service, and with its refusals for requests that reach no route. */
function createFastify(timeouts: RequestTimeouts, replies: Replies): FastifyInstance {
  const app = Fastify({
    genReqId: () => randomUUID(),
    exposeHeadRoutes: false,
    return503OnClosing: false,
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    // Longer than any head that the parser lets through: a path id of any length is its own route's to refuse.
    routerOptions: { maxParamLength: MAX_HEAD_BYTES, querystringParser: () => NO_QUERY },
    clientErrorHandler: refuseRaw(replies.headers),
    frameworkErrors: (_error, request, reply) => refuseBadUrl(request, reply, replies),
    http: {
      headersTimeout: timeouts.headersMs,
      connectionsCheckingInterval: timeouts.checkEveryMs,
      maxHeaderSize: MAX_HEAD_BYTES,
      // Node's own 400 has no X-Request-ID; the routes ask for the header themselves.
      requireHostHeader: false,
    },
  });
  app.server.on('connect', refuseConnect(replies.headers));
  // An expectation other than 100-continue may be ignored (RFC 9110 section 10.1.1); Node's own 417 has no X-Request-ID.
  app.server.on('checkExpectation', (raw, response) => app.server.emit('request', raw, response));
  return app;
}

/** Refuses a path that cannot be decoded, for which Fastify runs no hooks. */
function refuseBadUrl(request: FastifyRequest, reply: FastifyReply, replies: Replies): void {
  const message = ambiguityOf(request.raw);
  const answer =
    message === null
      ? refusal(request, 'not_found')
      : refusal(request, 'invalid_body', { message, headers: CLOSE });
  writeHead(reply.headers(replies.headers), replies, true, answer);
  // A Buffer: Fastify adds a charset to the content type of a text.
  const payload = Buffer.from(answer.body as string);
  transmit(replies, { leave: () => {} }).call(request.server, request, reply, payload, () =>
    reply.send(payload),
  );
}

/** Limits work in time; a failure that comes later is logged. */
const timeLimit =
  (milliseconds: number, failed: ReturnType<typeof createFailed>) =>
  <T>(request: { readonly id: string }, route: Route, work: Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      let isLate = false;
      const timer = setTimeout(() => {
        isLate = true;
        reject(new BackendTimeout(`no answer within ${milliseconds} ms`));
      }, milliseconds);
      work.then(
        (value) => {
          clearTimeout(timer);
          resolve(value);
        },
        (failure) => {
          clearTimeout(timer);
          if (isLate) failed(request, failure, route);
          reject(failure);
        },
      );
    });

/** Browsers take an answer for what it says that it is. */
const NO_SNIFFING = { 'x-content-type-options': 'nosniff' };
/** For a year (RFC 6797); custom domains are https as well. */
const STRICT_TRANSPORT = { 'strict-transport-security': 'max-age=31536000' };

const MAX_HEAD_BYTES = 16_384;
const NO_QUERY = {};

/** Every method but CONNECT, which Node does not hand over as a request. */
const ROUTED_METHODS = METHODS.filter((method) => method !== 'CONNECT');

/** HEAD goes with GET (RFC 9110 section 9.3.2), except under /v1, where contract, Requests 8 excludes it. */
function methodsOf({ method, path }: Route): string[] {
  return method === 'GET' && !path.startsWith('/v1/') ? ['GET', 'HEAD'] : [method];
}

const CLOSE = { connection: 'close' };

/** @returns whether it refused the request */
function refuseAmbiguous(request: FastifyRequest, reply: FastifyReply): boolean {
  const message = ambiguityOf(request.raw);
  if (message !== null) refuse(request, reply, 'invalid_body', { message, headers: CLOSE });
  return message !== null;
}

/** Fastify demands a handler; `onRequest` never goes on to it. */
function unreachable(): never {
  throw new Error('every request is answered in onRequest');
}
